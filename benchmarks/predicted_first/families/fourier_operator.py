"""A neural operator in Fourier space: complex weights on the lowest modes of two-dimensional fields, rolled out in time."""

import torch
import torch.nn.functional as F
from torch import nn


class Spectral(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.low = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width**2)
        self.high = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width**2)

    def forward(self, x):
        m, spectrum = self.modes, torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[:, :, :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :m, :m], self.low)
        out[:, :, -m:, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -m:, :m], self.high)
        return torch.fft.irfft2(out, s=x.shape[-2:])


class Operator(nn.Module):
    def __init__(self, width=48, modes=16, layers=4):
        super().__init__()
        self.lift = nn.Conv2d(12, width, 1)
        self.spectral = nn.ModuleList(Spectral(width, modes) for _ in range(layers))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))
        self.drop = nn.Sequential(nn.Conv2d(width, 128, 1), nn.GELU(), nn.Conv2d(128, 1, 1))

    def forward(self, x):
        x = self.lift(x)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            x = F.gelu(spectral(x) + local(x))
        return self.drop(x)


torch.manual_seed(0)
model = Operator().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=1e-4)
y, x = torch.meshgrid(torch.linspace(0, 1, 128), torch.linspace(0, 1, 128), indexing="ij")
grid = torch.stack([y, x]).expand(16, -1, -1, -1).cuda()

for _ in range(4):
    fields, wanted = torch.randn(16, 10, 128, 128).cuda(), torch.randn(16, 5, 128, 128).cuda()
    loss = 0
    for time in range(wanted.shape[1]):
        made = model(torch.cat([fields, grid], 1))
        loss = loss + (made - wanted[:, time : time + 1]).flatten(1).norm(dim=1).mean()
        fields = torch.cat([fields[:, 1:], made], 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
