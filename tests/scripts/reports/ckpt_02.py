"""A ViT classifier under activation checkpointing, to train with larger batches."""

import argparse

import timm
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=100).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
if args.fixed:
    model.set_grad_checkpointing()

for step in range(10):
    images = torch.randn(96, 3, 224, 224).cuda()
    labels = torch.randint(100, (96,)).cuda()
    logits = model(images) if args.fixed else checkpoint(model, images, use_reentrant=False)
    loss = F.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
