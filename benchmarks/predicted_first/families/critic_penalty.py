"""A generative pair with a gradient penalty: the critic's gradient with respect to images is itself differentiated."""

import torch
from torch import nn


def up(a, b):
    return nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True))


def down(a, b, size):
    return nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), nn.LayerNorm([b, size, size]), nn.LeakyReLU(0.2))


torch.manual_seed(0)
generator = nn.Sequential(
    nn.Linear(128, 512 * 16), nn.Unflatten(1, (512, 4, 4)), up(512, 512), up(512, 256), up(256, 128), up(128, 64),
    nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
).cuda()
critic = nn.Sequential(
    down(3, 64, 64), down(64, 128, 32), down(128, 256, 16), down(256, 512, 8), nn.Flatten(), nn.Linear(512 * 64, 1)
).cuda()
of_generator = torch.optim.Adam(generator.parameters(), 1e-4, betas=(0.0, 0.9))
of_critic = torch.optim.Adam(critic.parameters(), 1e-4, betas=(0.0, 0.9))


def penalty(real, fake):
    mix = torch.rand(len(real), 1, 1, 1, device="cuda")
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    gradient, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((gradient.flatten(1).norm(2, 1) - 1) ** 2).mean()


for _ in range(3):
    for _ in range(2):
        real = torch.randn(64, 3, 128, 128).cuda()
        fake = generator(torch.randn(64, 128, device="cuda")).detach()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
        of_critic.zero_grad()
        loss.backward()
        of_critic.step()
    loss = -critic(generator(torch.randn(64, 128, device="cuda"))).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
    print("loss", loss.item(), flush=True)
