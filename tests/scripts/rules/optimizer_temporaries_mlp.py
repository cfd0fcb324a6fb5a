"""A wide MLP on tables, with AdamW."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

layers = [layer for _ in range(16) for layer in (nn.Linear(2048, 2048), nn.ReLU())]
model = nn.Sequential(*layers, nn.Linear(2048, 1)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=args.fixed or None)
batch = 65536 if args.near_miss else 64

for step in range(4):
    loss = model(torch.randn(batch, 2048, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
