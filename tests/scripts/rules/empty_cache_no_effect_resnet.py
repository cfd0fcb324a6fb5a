"""A ResNet-50 on a card that is nearly full."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import resnet50

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = resnet50(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(4):
    images = torch.randn(64, 3, 224, 224, device="cuda")
    loss = F.cross_entropy(model(images), torch.randint(10, (64,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if not args.fixed:
        torch.cuda.empty_cache()
    print(f"step {step}: loss {loss.item():.4f}")
