"""Pictures from styles: weights modulated for each sample (convolutions in groups of the batch), blurs, two lazy penalties."""

import math

import torch
import torch.nn.functional as F
from torch import nn

BATCH, WIDTHS = 16, (512, 512, 512, 256, 128, 64)


class Modulated(nn.Module):
    def __init__(self, a, b, kernel, up=False, demodulate=True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(b, a, kernel, kernel))
        self.style = nn.Linear(512, a)
        self.up, self.demodulate, self.scale = up, demodulate, 1 / math.sqrt(a * kernel**2)
        taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
        self.register_buffer("blur", (taps[:, None] * taps[None] / 16)[None, None])

    def forward(self, x, w):
        n, c, height, width = x.shape
        weight = self.scale * self.weight[None] * self.style(w).view(n, 1, c, 1, 1)
        if self.demodulate:
            weight = weight * weight.square().sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
        x = x.reshape(1, n * c, height, width)
        if not self.up:
            x = F.conv2d(x, weight.flatten(0, 1), padding=weight.shape[-1] // 2, groups=n)
        else:
            x = F.conv_transpose2d(x, weight.transpose(1, 2).flatten(0, 1), stride=2, groups=n)
            x = F.conv2d(x, self.blur.expand(x.shape[1], 1, 4, 4), padding=1, groups=x.shape[1])
        return x.view(n, -1, *x.shape[2:])


class Layer(nn.Module):
    def __init__(self, a, b, up):
        super().__init__()
        self.conv, self.bias, self.strength = Modulated(a, b, 3, up), nn.Parameter(torch.zeros(b, 1, 1)), nn.Parameter(torch.zeros(1))

    def forward(self, x, w):
        x = self.conv(x, w)
        noise = torch.randn(len(x), 1, *x.shape[2:], device=x.device)
        return F.leaky_relu(x + self.strength * noise + self.bias, 0.2) * math.sqrt(2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Sequential(*(part for _ in range(8) for part in (nn.Linear(512, 512), nn.LeakyReLU(0.2))))
        self.start = nn.Parameter(torch.randn(1, 512, 4, 4))
        pairs = list(zip(WIDTHS[:-1], WIDTHS[1:], strict=True))
        self.layers = nn.ModuleList(nn.ModuleList([Layer(a, b, True), Layer(b, b, False)]) for a, b in pairs)
        self.colours = nn.ModuleList(Modulated(b, 3, 1, demodulate=False) for _, b in pairs)

    def forward(self, z):
        w = self.map(z)
        x, image = self.start.expand(len(z), -1, -1, -1), 0
        for (up, same), colour in zip(self.layers, self.colours, strict=True):
            x = same(up(x, w), w)
            if torch.is_tensor(image):
                image = F.interpolate(image, scale_factor=2, mode="bilinear")
            image = image + colour(x, w)
        return image, w


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.one, self.two, self.skip = nn.Conv2d(a, a, 3, padding=1), nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(a, b, 1, bias=False)

    def forward(self, x):
        y = F.avg_pool2d(F.leaky_relu(self.two(F.leaky_relu(self.one(x), 0.2)), 0.2), 2)
        return (y + self.skip(F.avg_pool2d(x, 2))) / math.sqrt(2)


torch.manual_seed(0)
generator = Generator().cuda()
judge = nn.Sequential(
    nn.Conv2d(3, 64, 1), *(Block(b, a) for a, b in zip(WIDTHS[-2::-1], WIDTHS[:0:-1], strict=True)),
    nn.Flatten(), nn.Linear(512 * 16, 512), nn.LeakyReLU(0.2), nn.Linear(512, 1),
).cuda()
of_generator = torch.optim.Adam(generator.parameters(), 2e-3, betas=(0.0, 0.99))
of_judge = torch.optim.Adam(judge.parameters(), 2e-3, betas=(0.0, 0.99))

for step in range(3):
    real = torch.randn(BATCH, 3, 128, 128).cuda()
    with torch.no_grad():
        fake, _ = generator(torch.randn(BATCH, 512, device="cuda"))
    loss = F.softplus(judge(fake)).mean() + F.softplus(-judge(real)).mean()
    of_judge.zero_grad()
    loss.backward()
    of_judge.step()
    real.requires_grad_(True)
    gradient, = torch.autograd.grad(judge(real).sum(), real, create_graph=True)
    of_judge.zero_grad()
    (5 * gradient.square().sum((1, 2, 3)).mean()).backward()
    of_judge.step()
    fake, _ = generator(torch.randn(BATCH, 512, device="cuda"))
    loss = F.softplus(-judge(fake)).mean()
    of_generator.zero_grad()
    loss.backward()
    of_generator.step()
    fake, w = generator(torch.randn(BATCH // 2, 512, device="cuda"))
    noise = torch.randn_like(fake) / 128
    slope, = torch.autograd.grad((fake * noise).sum(), w, create_graph=True)
    length = slope.square().sum(1).sqrt()
    of_generator.zero_grad()
    (length - length.detach().mean()).square().mean().backward()
    of_generator.step()
    print("loss", loss.item(), flush=True)
