"""Twelve layers whose parameters are most of what the run needs, of the width that the last argument says."""

import sys

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
size = int(sys.argv[-1]) if len(sys.argv) > 1 else 2048
net = nn.Sequential(*[nn.Linear(size, size) for _ in range(12)]).to(device)
optimizer = torch.optim.AdamW(
    net.parameters(),
    lr=1e-3,  # a usual one
)
for _ in range(3):
    net(torch.randn(8, size, device=device)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
