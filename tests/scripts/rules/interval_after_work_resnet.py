"""A ResNet-18 whose features' correlations are watched every 100 steps."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import resnet18

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = resnet18(weights=None, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
seen = {}
model.layer1.register_forward_hook(lambda module, inputs, output: seen.update(features=output.detach()))


def correlations(features):
    pixels = features.flatten(2)[:, :, ::2]
    return pixels.transpose(1, 2) @ pixels / pixels.shape[1]


for step in range(1, 20):
    images = torch.randn(32, 3, 256, 256, device="cuda")
    loss = F.cross_entropy(model(images), torch.randint(10, (32,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.near_miss:
        strength = seen["features"].abs().mean()
        if step % 100 == 0:
            print(f"step {step}: strength {strength.item():.3f}")
    elif args.fixed:
        if step % 100 == 0:
            print(f"step {step}: correlation {correlations(seen['features']).mean().item():.3f}")
    else:
        matrix = correlations(seen["features"])
        if step % 100 == 0:
            print(f"step {step}: correlation {matrix.mean().item():.3f}")
    seen.clear()
