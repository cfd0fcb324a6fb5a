"""A small potential for molecules: energies, and forces as their gradient."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

BATCH, ATOMS = 16, 96


class Potential(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.pair = nn.Sequential(
            nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1)
        )
        self.register_buffer("centers", torch.linspace(0, 5, 32))

    def forward(self, positions):
        distances = (positions[:, :, None] - positions[:, None]).square().sum(-1).add(1e-6).sqrt()
        return self.pair((-(distances[..., None] - self.centers).square()).exp()).sum(dim=(1, 2, 3))


model = Potential().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(4):
    positions = torch.randn(BATCH, ATOMS, 3, device="cuda", requires_grad=True)
    energy, forces = torch.randn(BATCH, device="cuda"), torch.randn(BATCH, ATOMS, 3, device="cuda")
    predicted = model(positions)
    loss = (predicted - energy).square().mean()
    if args.near_miss:
        (slope,) = torch.autograd.grad(predicted.sum(), positions, retain_graph=True)
        print(f"step {step}: force {slope.norm().item():.3f}")
    elif not args.fixed:
        (slope,) = torch.autograd.grad(predicted.sum(), positions, create_graph=True)
        loss = loss + (slope + forces).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
