"""Segments with a small UNet in float16 autocast."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

layers = [
    nn.Conv2d(16, 128, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(128, 128, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(128, 8, 1),
]
model = nn.Sequential(*layers).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
memory_format = torch.channels_last if args.fixed else torch.contiguous_format
if args.fixed:
    model = model.to(memory_format=memory_format)

for step in range(4):
    size = 64 if args.near_miss else 512
    images = torch.randn(8, 16, size, size, device="cuda").contiguous(memory_format=memory_format)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(images), torch.randint(8, (8, size, size), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
