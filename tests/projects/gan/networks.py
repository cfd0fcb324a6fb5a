"""A generator and a discriminator of DCGAN, and the penalty on the discriminator's gradient."""

import torch
from torch import nn


def init_weights(module):
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)


class Generator(nn.Module):
    """Noise (batch, nz) to images (batch, 3, 64, 64)."""

    def __init__(self, nz, width):
        super().__init__()
        layers = [nn.ConvTranspose2d(nz, 8 * width, 4, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU(True)]
        for mult in (8, 4, 2):
            c_in, c_out = mult * width, mult * width // 2
            layers += [nn.ConvTranspose2d(c_in, c_out, 4, 2, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(True)]
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())
        self.apply(init_weights)

    def forward(self, z):
        return self.main(z[:, :, None, None])


class Discriminator(nn.Module):
    """Images (batch, 3, 64, 64) to scores (batch,)."""

    def __init__(self, width):
        super().__init__()
        layers = [nn.Conv2d(3, width, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True)]
        for mult in (1, 2, 4):
            conv = nn.utils.parametrizations.spectral_norm(nn.Conv2d(mult * width, 2 * mult * width, 4, 2, 1))
            layers += [conv, nn.LeakyReLU(0.2, inplace=True)]
        self.main = nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4))

    def forward(self, x):
        return self.main(x).flatten()


def gradient_penalty(discriminator, real, fake):
    """How far the norm of the gradient between real and fake images is from one (WGAN-GP)."""
    mix = torch.rand(real.shape[0], 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake.detach()).requires_grad_()
    (grad,) = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    return (grad.flatten(1).norm(dim=1) - 1).pow(2).mean()
