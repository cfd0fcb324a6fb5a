"""A ViT-L/16 of torchvision with Adam, small batches."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import vit_l_16

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = vit_l_16(weights=None).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False if args.fixed else None)

for step in range(5):
    images = torch.randn(2, 3, 224, 224).cuda()
    labels = torch.randint(1000, (2,)).cuda()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
