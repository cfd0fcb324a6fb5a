"""A convolutional autoencoder that keeps its losses for a curve."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = nn.Sequential(
    nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.GELU(), nn.ConvTranspose2d(32, 3, 4, stride=2, padding=1)
).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
curve = []

for step in range(20):
    images = torch.randn(32, 3, 256, 256, device="cuda")
    if args.near_miss:
        loss = F.cross_entropy(model(images), images.softmax(dim=1))
    else:
        loss = F.mse_loss(model(images), images)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item() if args.fixed else loss.detach())
    print(f"step {step}: {len(curve)} losses")
