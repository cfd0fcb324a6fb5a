"""Colour correction in front of a frozen ResNet-18 of torchvision, and a head behind it."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

backbone = resnet18(weights=None, num_classes=64).requires_grad_(False)
correct, head = nn.Conv2d(3, 3, 1), nn.Linear(64, 10)
if not args.near_miss:
    correct.requires_grad_(False)
model = nn.ModuleList([correct, backbone, head]).cuda()
optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.01)

for step in range(4):
    images = torch.randn(64, 3, 128, 128, device="cuda", requires_grad=not (args.fixed or args.near_miss))
    loss = F.cross_entropy(head(backbone(correct(images))), torch.randint(10, (64,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
