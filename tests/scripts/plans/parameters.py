"""Twelve layers whose parameters are most of what the run needs."""

import torch
from torch import nn

net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(12)]).cuda()
optimizer = torch.optim.AdamW(
    net.parameters(),
    lr=1e-3,  # a usual one
)
for _ in range(3):
    net(torch.randn(8, 2048, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
