"""A GPT-2 whose cache is emptied before every backward."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = GPT2LMHeadModel(GPT2Config(n_embd=256, n_layer=2, n_head=4, vocab_size=8192, use_cache=False)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(4):
    tokens = torch.randint(8192, (16, 512), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    if not args.fixed:
        torch.cuda.empty_cache()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
