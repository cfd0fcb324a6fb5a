"""A small WGAN-GP: a convolutional critic with a gradient penalty."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

BATCH, LATENT = 256, 128


def block(c_in, c_out):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, stride=2, padding=1), nn.SiLU())


critic = nn.Sequential(block(3, 64), block(64, 128), block(128, 256), nn.Flatten(), nn.Linear(256 * 8 * 8, 1)).cuda()
generator = nn.Sequential(
    nn.Linear(LATENT, 128 * 8 * 8),
    nn.Unflatten(1, (128, 8, 8)),
    nn.ConvTranspose2d(128, 64, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(32, 3, 4, 2, 1),
    nn.Tanh(),
).cuda()
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))


def penalty(real, fake):
    alpha = torch.rand(real.shape[0], 1, 1, 1, device="cuda")
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_()
    score = critic(mixed)
    (gradient,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
    return ((gradient.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


for iteration in range(8):
    real = torch.randn(BATCH, 3, 64, 64).cuda()
    with torch.no_grad():
        fake = generator(torch.randn(BATCH, LATENT, device="cuda"))
    critic_loss = critic(fake).mean() - critic(real).mean() + 10.0 * penalty(real, fake)
    critic_optimizer.zero_grad()
    if args.fixed:
        critic_loss.backward()
    else:
        critic_loss.backward(create_graph=True)
    critic_optimizer.step()

    if iteration % 5 == 4:
        generator_loss = -critic(generator(torch.randn(BATCH, LATENT, device="cuda"))).mean()
        generator_optimizer.zero_grad()
        generator_loss.backward()
        generator_optimizer.step()
    print(f"iteration {iteration}: critic {critic_loss.item():.4f}")
