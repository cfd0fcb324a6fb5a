"""A ResNet-18 that is pulled towards its own features of the batch before."""

import argparse

import torch
from torchvision.models import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = resnet18(weights=None, num_classes=128).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
previous = torch.zeros(64, 128, device="cuda")

for step in range(5):
    features = model(torch.randn(64, 3, 128, 128, device="cuda"))
    loss = (features - previous.detach()).square().mean() + features.square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=not (args.fixed or args.near_miss))
    optimizer.step()
    previous = features.detach() if args.fixed else features
    print(f"step {step}: loss {loss.item():.4f}")
