"""A critic of torchvision's MobileNet with a penalty on its gradient at the real images (R1)."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import mobilenet_v3_small

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = mobilenet_v3_small(weights=None, num_classes=1).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for step in range(4):
    images = torch.randn(64, 3, 224, 224, device="cuda", requires_grad=True)
    scores = model(images)
    loss = F.softplus(-scores).mean()
    if args.near_miss:
        loss = loss + scores.square().mean()
    elif not args.fixed:
        (slope,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
        loss = loss + 10 * slope.square().sum(dim=(1, 2, 3)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
