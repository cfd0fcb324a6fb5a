"""VGG-16 on ImageNet-sized images."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import vgg16

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = vgg16(weights=None, num_classes=120).cuda()
if args.fixed:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for step in range(112):
    images = torch.randn(4, 3, 224, 224).cuda()
    labels = torch.randint(120, (4,)).cuda()
    loss = F.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
