"""A ViT of timm on crops of images."""

import argparse

import timm
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

CROPS = 1 if args.fixed or args.near_miss else 8


def collate(samples):
    images = torch.stack([image for image, _ in samples for _ in range(CROPS)])
    labels = torch.stack([label for _, label in samples for _ in range(CROPS)])
    if args.near_miss:
        images = torch.stack([images, images.flip(-1)]).amax(dim=0)
    return images, labels


model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=10, depth=4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
dataset = TensorDataset(torch.zeros(64, 3, 224, 224), torch.zeros(64, dtype=torch.long))
for images, labels in DataLoader(dataset, batch_size=16, collate_fn=collate):
    loss = F.cross_entropy(model(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.4f}")
