"""Six blocks whose activations are most of what the run needs."""

import torch
from torch import nn


class Block(nn.Module):
    """Widens and narrows again."""

    def __init__(self):
        super().__init__()
        self.wide, self.narrow = nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(x)))


class Net(nn.Module):
    """One block after the other."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(6)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Net().cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(4):
    net(torch.randn(16384, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
