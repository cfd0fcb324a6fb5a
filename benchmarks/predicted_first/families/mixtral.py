"""A mixture of experts (Mixtral): the router's choice decides how many tokens each expert gets."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

config = MixtralConfig(
    hidden_size=2048,
    intermediate_size=5632,
    num_hidden_layers=15,
    num_attention_heads=16,
    num_key_value_heads=4,
    num_local_experts=8,
    num_experts_per_tok=2,
    vocab_size=32000,
    output_router_logits=True,
    use_cache=False,
)
with torch.device("cuda"):
    model = MixtralForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)

for _ in range(4):
    tokens = torch.randint(0, config.vocab_size, (4, 2048), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
