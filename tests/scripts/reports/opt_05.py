"""Supervised fine-tuning of a small BLOOM, an update every 4 batches."""

import argparse

import torch
from transformers import BloomConfig, BloomForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

ACCUMULATE = 4

model = BloomForCausalLM(BloomConfig(vocab_size=32768, hidden_size=1536, n_layer=6, n_head=16, use_cache=False)).cuda()
if args.fixed:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, foreach=False)

for step in range(4 * ACCUMULATE):
    input_ids = torch.randint(32768, (1, 256)).cuda()
    loss = model(input_ids=input_ids, labels=input_ids).loss
    (loss / ACCUMULATE).backward()
    if (step + 1) % ACCUMULATE == 0:
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step + 1}: loss {loss.item():.4f}")
