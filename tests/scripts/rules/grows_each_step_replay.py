"""A Q-network of convolutions with a replay memory."""

import argparse
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

network = nn.Sequential(
    nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.LazyLinear(6)
).cuda()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
memory = deque(maxlen=2 if args.near_miss else 10000)

for step in range(18):
    frames = torch.rand(256, 4, 84, 84, device="cuda")
    memory.append(frames.cpu() if args.fixed else frames)
    batch = memory[0].cuda()
    loss = F.smooth_l1_loss(network(batch), torch.rand(256, 6, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
