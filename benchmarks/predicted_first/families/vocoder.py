"""A neural vocoder as in HiFi-GAN: transposed convolutions under weight norm, discriminators, two optimizers."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Residual(nn.Module):
    def __init__(self, channels, kernel):
        super().__init__()
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv1d(channels, channels, kernel, dilation=d, padding=d * (kernel - 1) // 2))
            for d in (1, 3, 5)
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(F.leaky_relu(x, 0.1))
        return x


class Generator(nn.Module):
    def __init__(self, channels=512):
        super().__init__()
        self.pre = weight_norm(nn.Conv1d(80, channels, 7, padding=3))
        self.ups, self.mixed = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
            channels //= 2
            up = nn.ConvTranspose1d(2 * channels, channels, kernel, rate, padding=(kernel - rate) // 2)
            self.ups.append(weight_norm(up))
            self.mixed.append(nn.ModuleList(Residual(channels, k) for k in (3, 7, 11)))
        self.post = weight_norm(nn.Conv1d(channels, 1, 7, padding=3))

    def forward(self, mel):
        x = self.pre(mel)
        for up, blocks in zip(self.ups, self.mixed, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.post(F.leaky_relu(x)))


class PeriodDiscriminator(nn.Module):
    def __init__(self, period):
        super().__init__()
        self.period = period
        sizes = [1, 32, 128, 512, 1024]
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, (5, 1), (3, 1), padding=(2, 0))) for a, b in zip(sizes, sizes[1:], strict=False)
        )
        self.post = weight_norm(nn.Conv2d(1024, 1, (3, 1), padding=(1, 0)))

    def forward(self, x):
        length = x.shape[-1]
        if length % self.period:
            x = F.pad(x, (0, self.period - length % self.period), "reflect")
        x = x.view(x.shape[0], 1, -1, self.period)
        features = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            features.append(x)
        return self.post(x).flatten(1), features


generator = Generator().cuda()
judges = nn.ModuleList(PeriodDiscriminator(p) for p in (2, 3, 5, 7, 11)).cuda()
optimizer_g = torch.optim.AdamW(generator.parameters(), 2e-4, betas=(0.8, 0.99))
optimizer_d = torch.optim.AdamW(judges.parameters(), 2e-4, betas=(0.8, 0.99))

for _ in range(4):
    mel, real = torch.randn(16, 80, 32).cuda(), torch.rand(16, 1, 8192).cuda() * 2 - 1
    made = generator(mel)
    optimizer_d.zero_grad()
    loss_d = 0
    for judge in judges:
        loss_d = loss_d + ((1 - judge(real)[0]) ** 2).mean() + (judge(made.detach())[0] ** 2).mean()
    loss_d.backward()
    optimizer_d.step()

    optimizer_g.zero_grad()
    loss_g = 45 * F.l1_loss(made, real)
    for judge in judges:
        score, features = judge(made)
        _, wanted = judge(real)
        loss_g = loss_g + ((1 - score) ** 2).mean()
        loss_g = loss_g + 2 * sum(F.l1_loss(a, b) for a, b in zip(features, wanted, strict=True))
    loss_g.backward()
    optimizer_g.step()
    print("losses", loss_d.item(), loss_g.item(), flush=True)
