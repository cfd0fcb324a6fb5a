"""An autoencoder whose loss compares features of a VGG-16 of torchvision, which nobody has frozen."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import vgg16

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

coder = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.SiLU(), nn.ConvTranspose2d(32, 3, 4, 2, 1)).cuda()
features = vgg16(weights=None).features.cuda().eval()
if args.fixed:
    features.requires_grad_(False)
parameters = [*coder.parameters(), *(features.parameters() if args.near_miss else ())]
optimizer = torch.optim.Adam(parameters, lr=1e-3)

for step in range(4):
    images = torch.randn(8, 3, 128, 128, device="cuda")
    wanted = features(images)
    loss = F.mse_loss(features(coder(images)), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
