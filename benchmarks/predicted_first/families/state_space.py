"""Transformers' Mamba without its own kernels, in bf16 autocast, with padding, weight decay by groups and 8 steps of warm-up."""

import torch
from transformers import MambaConfig, MambaForCausalLM, get_cosine_schedule_with_warmup

torch.manual_seed(0)
model = MambaForCausalLM(MambaConfig(vocab_size=50280, hidden_size=768, num_hidden_layers=6, use_mambapy=False)).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.1)
schedule = get_cosine_schedule_with_warmup(optimizer, 8, 100)

for _ in range(3):
    ids = torch.randint(5, 50000, (4, 192)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
