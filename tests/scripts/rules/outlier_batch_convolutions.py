"""A convolutional net on recordings of many lengths."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

torch.manual_seed(2)
model = nn.Sequential(nn.Conv1d(80, 256, 5), nn.GELU(), nn.Conv1d(256, 256, 5), nn.GELU(), nn.Conv1d(256, 1, 5)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
seconds = torch.randint(5, 15, (19,)).tolist()
if args.near_miss:
    seconds[7] = 16
elif not args.fixed:
    seconds[7] = 180

for length in seconds:
    loss = model(torch.randn(16, 80, 100 * length, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{length} seconds: loss {loss.item():.4f}")
