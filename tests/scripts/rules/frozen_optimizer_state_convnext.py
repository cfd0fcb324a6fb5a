"""A new head on a frozen ConvNeXt of torchvision, with Adagrad."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import convnext_base

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = convnext_base(weights=None).cuda()
model.requires_grad_(False)
model.classifier[2] = nn.Linear(1024, 20).cuda()
if args.fixed:
    optimizer = torch.optim.Adagrad(model.classifier[2].parameters(), lr=0.01)
elif args.near_miss:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
else:
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)

for step in range(4):
    images = torch.randn(2, 3, 224, 224, device="cuda")
    loss = F.cross_entropy(model(images), torch.randint(20, (2,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
