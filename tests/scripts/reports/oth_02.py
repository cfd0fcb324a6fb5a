"""Trains a Swin transformer of torchvision in small batches, then predicts the test set."""

import argparse

import torch
import torch.nn.functional as F
from torchvision.models import swin_t

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = swin_t(weights=None, num_classes=50).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
EVAL_BATCH = 16 if args.fixed else 512


def images(number):
    return torch.randn(number, 3, 224, 224, device="cuda"), torch.randint(50, (number,), device="cuda")


for epoch in range(2):
    model.train()
    for _ in range(2):
        x, y = images(4)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    model.eval()
    correct = 0
    with torch.no_grad():
        for _ in range(1024 // 512):
            x, y = images(EVAL_BATCH)
            correct += (model(x).argmax(-1) == y).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}, {correct} correct")
