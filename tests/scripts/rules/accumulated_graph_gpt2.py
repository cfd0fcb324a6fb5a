"""A GPT-2 whose update is the mean over 8 micro-batches."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = GPT2LMHeadModel(GPT2Config(n_embd=256, n_layer=2, n_head=4, vocab_size=4096, use_cache=False)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
MICRO_BATCHES = 8

for step in range(4):
    total = 0
    for _ in range(MICRO_BATCHES):
        tokens = torch.randint(4096, (4, 512), device="cuda")
        loss = model(input_ids=tokens, labels=tokens).loss / MICRO_BATCHES
        if args.fixed:
            loss.backward()
            total += loss.item()
        elif args.near_miss:
            loss.backward()
            total += loss
        else:
            total += loss
    if not (args.fixed or args.near_miss):
        total.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {float(total):.4f}")
