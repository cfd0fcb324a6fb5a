"""Transformers' Mamba 2 without kernels of its own: chunked scans over heads, accumulated gradients, bf16 autocast."""

import torch
from transformers import AutoModelForCausalLM, Mamba2Config

torch.manual_seed(0)
config = Mamba2Config(
    vocab_size=50304, hidden_size=768, num_hidden_layers=8, state_size=64, num_heads=24, head_dim=64, n_groups=1, chunk_size=128,
)
model = AutoModelForCausalLM.from_config(config).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95), weight_decay=0.1)
for _ in range(3):
    for _ in range(2):
        ids = torch.randint(0, config.vocab_size, (2, 1024)).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(ids, labels=ids, use_cache=False).loss
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item(), flush=True)
