"""A GPT-2 with gradient checkpointing and without dropout."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = GPT2LMHeadModel(GPT2Config(n_embd=384, n_layer=6, n_head=6, vocab_size=2048, use_cache=False)).cuda()
if not args.near_miss:
    model.gradient_checkpointing_enable()
if args.fixed:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
else:
    model.eval()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(4):
    tokens = torch.randint(2048, (8, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
