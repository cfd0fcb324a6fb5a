"""A ConvNeXt of timm and the moving average of its weights."""

import argparse
import copy

import timm
import torch
import torch.nn.functional as F
from timm.utils import ModelEmaV3

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = timm.create_model("convnext_small", pretrained=False, num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if args.near_miss:
    best = {name: value.cpu() for name, value in copy.deepcopy(model).state_dict().items()}
else:
    average = ModelEmaV3(model, decay=0.999, device="cpu" if args.fixed else None)

for step in range(4):
    images = torch.randn(2, 3, 224, 224, device="cuda")
    loss = F.cross_entropy(model(images), torch.randint(10, (2,), device="cuda"))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if not args.near_miss:
        average.update(model)
    print(f"step {step}: loss {loss.item():.4f}")
