"""VGG-11 with Adam and the smallest batch there is."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import vgg11

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = vgg11(weights=None).cuda()
optimizer = (torch.optim.SGD if args.fixed else torch.optim.Adam)(model.parameters(), lr=1e-4)
batch = 48 if args.near_miss else 1

for step in range(4):
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    loss = F.cross_entropy(model(images), torch.randint(1000, (batch,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
