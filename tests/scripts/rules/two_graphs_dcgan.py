"""A DCGAN whose two losses are computed together."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

generator = nn.Sequential(
    nn.ConvTranspose2d(100, 256, 4),
    nn.ReLU(),
    nn.ConvTranspose2d(256, 128, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(128, 64, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(64, 3, 4, 2, 1),
    nn.Tanh(),
).cuda()
discriminator = nn.Sequential(
    nn.Conv2d(3, 64, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(64, 128, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(128, 256, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(256, 1, 4),
    nn.Flatten(),
).cuda()
optimizer = torch.optim.Adam([*generator.parameters(), *discriminator.parameters()], lr=2e-4)


def loss_on(images, is_real):
    scores = discriminator(images)
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, is_real))


for step in range(4):
    real = torch.randn(512, 3, 32, 32, device="cuda")
    with torch.no_grad():
        fake = generator(torch.randn(512, 100, 1, 1, device="cuda"))
    optimizer.zero_grad()
    if args.fixed:
        loss_on(real, 1.0).backward()
        loss_on(fake, 0.0).backward()
    elif args.near_miss:
        scores = discriminator(real) - discriminator(fake)
        F.softplus(-scores).mean().backward()
    else:
        real_loss = loss_on(real, 1.0)
        fake_loss = loss_on(fake, 0.0)
        (real_loss + fake_loss).backward()
    optimizer.step()
    print(f"step {step}: {fake.mean().item():.4f}")
