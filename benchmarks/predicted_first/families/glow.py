"""Glow: actnorm set by the first batch, invertible 1x1 convolutions, affine couplings, and the way back to pictures."""

from math import log, pi

import torch
from torch import nn
from torch.nn import functional as F

BATCH, SIZE, FLOWS, BLOCKS, BITS = 32, 64, 16, 3, 5


class ActNorm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, c, 1, 1))
        self.scale = nn.Parameter(torch.ones(1, c, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))

    def forward(self, x):
        if self.initialized.item() == 0:
            with torch.no_grad():
                flat = x.permute(1, 0, 2, 3).contiguous().view(x.shape[1], -1)
                mean = flat.mean(1).view(1, -1, 1, 1)
                std = flat.std(1).view(1, -1, 1, 1)
                self.loc.data.copy_(-mean)
                self.scale.data.copy_(1 / (std + 1e-6))
            self.initialized.fill_(1)
        logdet = x.shape[2] * x.shape[3] * torch.sum(torch.log(torch.abs(self.scale)))
        return self.scale * (x + self.loc), logdet

    def reverse(self, y):
        return y / self.scale - self.loc


class InvConv(nn.Module):
    def __init__(self, c):
        super().__init__()
        q, _ = torch.linalg.qr(torch.randn(c, c))
        self.weight = nn.Parameter(q.unsqueeze(2).unsqueeze(3))

    def forward(self, x):
        logdet = x.shape[2] * x.shape[3] * torch.slogdet(self.weight.squeeze().double())[1].float()
        return F.conv2d(x, self.weight), logdet

    def reverse(self, y):
        return F.conv2d(y, self.weight.squeeze().inverse().unsqueeze(2).unsqueeze(3))


class ZeroConv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, padding=0)
        self.conv.weight.data.zero_()
        self.conv.bias.data.zero_()
        self.scale = nn.Parameter(torch.zeros(1, b, 1, 1))

    def forward(self, x):
        out = F.pad(x, [1, 1, 1, 1], value=1)
        return self.conv(out) * torch.exp(self.scale * 3)


class Coupling(nn.Module):
    def __init__(self, c, filters=512):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(c // 2, filters, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(filters, filters, 1),
            nn.ReLU(inplace=True),
            ZeroConv(filters, c),
        )

    def forward(self, x):
        a, b = x.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        s = torch.sigmoid(log_s + 2)
        return torch.cat([a, (b + t) * s], 1), torch.sum(torch.log(s).view(x.shape[0], -1), 1)

    def reverse(self, y):
        a, b = y.chunk(2, 1)
        log_s, t = self.net(a).chunk(2, 1)
        return torch.cat([a, b / torch.sigmoid(log_s + 2) - t], 1)


class Flow(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.parts = nn.ModuleList([ActNorm(c), InvConv(c), Coupling(c)])

    def forward(self, x):
        total = 0
        for part in self.parts:
            x, det = part(x)
            total = total + det
        return x, total

    def reverse(self, y):
        for part in reversed(self.parts):
            y = part.reverse(y)
        return y


def gaussian_log_p(x, mean, log_sd):
    return -0.5 * log(2 * pi) - log_sd - 0.5 * (x - mean) ** 2 / torch.exp(2 * log_sd)


class Block(nn.Module):
    def __init__(self, c, split):
        super().__init__()
        self.flows = nn.ModuleList(Flow(c * 4) for _ in range(FLOWS))
        self.split = split
        self.prior = ZeroConv(c * 2, c * 4) if split else ZeroConv(c * 4, c * 8)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4).contiguous().view(b, c * 4, h // 2, w // 2)
        logdet = 0
        for flow in self.flows:
            x, det = flow(x)
            logdet = logdet + det
        if self.split:
            x, z = x.chunk(2, 1)
            mean, log_sd = self.prior(x).chunk(2, 1)
        else:
            z = x
            mean, log_sd = self.prior(torch.zeros_like(x)).chunk(2, 1)
        log_p = gaussian_log_p(z, mean, log_sd).view(b, -1).sum(1)
        return x, logdet, log_p, z

    def reverse(self, y, eps):
        if self.split:
            mean, log_sd = self.prior(y).chunk(2, 1)
            x = torch.cat([y, mean + torch.exp(log_sd) * eps], 1)
        else:
            mean, log_sd = self.prior(torch.zeros_like(eps)).chunk(2, 1)
            x = mean + torch.exp(log_sd) * eps
        for flow in self.flows[::-1]:
            x = flow.reverse(x)
        b, c, h, w = x.shape
        return x.view(b, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).contiguous().view(b, c // 4, h * 2, w * 2)


class Glow(nn.Module):
    def __init__(self, c=3):
        super().__init__()
        self.blocks = nn.ModuleList()
        for i in range(BLOCKS):
            self.blocks.append(Block(c, i < BLOCKS - 1))
            c *= 2

    def forward(self, x):
        logdet = log_p = 0
        zs = []
        for block in self.blocks:
            x, det, p, z = block(x)
            zs.append(z)
            logdet, log_p = logdet + det, log_p + p
        return log_p, logdet, zs

    def reverse(self, zs):
        x = None
        for block, z in zip(self.blocks[::-1], zs[::-1]):
            x = block.reverse(x, z)
        return x


model = Glow().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
bins = 2.0**BITS
z_shapes = [(6, 32, 32), (12, 16, 16), (48, 8, 8)]
z_sample = [torch.randn(16, *s).cuda() * 0.7 for s in z_shapes]
for i in range(5):
    image = torch.randint(0, 256, (BATCH, 3, SIZE, SIZE)).cuda().float()
    image = torch.floor(image / 2 ** (8 - BITS)) / bins - 0.5
    if i == 0:
        with torch.no_grad():
            log_p, logdet, _ = model(image + torch.rand_like(image) / bins)
            continue
    log_p, logdet, _ = model(image + torch.rand_like(image) / bins)
    logdet = logdet.mean()
    n = SIZE * SIZE * 3
    loss = (-(-log(bins) * n + logdet + log_p) / (log(2) * n)).mean()
    model.zero_grad()
    loss.backward()
    optimizer.param_groups[0]["lr"] = 1e-4
    optimizer.step()
    print(f"loss {loss.item():.5f} logdet {logdet.item():.5f}", flush=True)
with torch.no_grad():
    grid = model.reverse(z_sample).cpu().data
print(grid.shape)
