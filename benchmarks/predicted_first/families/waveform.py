"""Seismic inversion: acoustic waves stepped by finite differences through a trained map of speeds, low frequencies first, then higher."""

import math

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

NZ, NX, DX, DT, NT = 160, 320, 10.0, 0.001, 240
SHOTS, RECEIVERS, PML = 32, 300, 20


def ricker(freq, length, dt, peak):
    t = torch.arange(length) * dt - peak
    y = (math.pi * freq * t) ** 2
    return (1 - 2 * y) * torch.exp(-y)


def laplacian(u):
    """Of the fourth order, by slices of a padded field."""
    p = F.pad(u, (2, 2, 2, 2))
    c = p[:, 2:-2, 2:-2]
    zz = -p[:, :-4, 2:-2] + 16 * p[:, 1:-3, 2:-2] - 30 * c + 16 * p[:, 3:-1, 2:-2] - p[:, 4:, 2:-2]
    xx = -p[:, 2:-2, :-4] + 16 * p[:, 2:-2, 1:-3] - 30 * c + 16 * p[:, 2:-2, 3:-1] - p[:, 2:-2, 4:]
    return (zz + xx) / (12 * DX * DX)


class Propagator(torch.nn.Module):
    def __init__(self, velocity):
        super().__init__()
        self.velocity = torch.nn.Parameter(velocity)
        z, x = torch.arange(NZ + 2 * PML), torch.arange(NX + 2 * PML)
        edge = lambda i, n: torch.clamp(torch.maximum(PML - i, i - (n + PML - 1)), min=0) / PML
        sigma = 60.0 * (edge(z, NZ)[:, None] ** 2 + edge(x, NX)[None] ** 2)
        self.register_buffer("damp", sigma * DT)
        self.register_buffer("sx", torch.linspace(PML, NX + PML - 1, SHOTS).long())
        self.register_buffer("rx", torch.linspace(PML + 4, NX + PML - 5, RECEIVERS).long())

    def segment(self, v2dt2, u, previous, wavelet):
        shots, traces = torch.arange(SHOTS, device=u.device), []
        for amplitude in wavelet:
            following = (2 * u - (1 - self.damp) * previous + v2dt2 * laplacian(u)) / (1 + self.damp)
            source = torch.zeros_like(u)
            source[shots, PML + 1, self.sx] = amplitude
            u, previous = following + source * v2dt2, u
            traces.append(u[:, PML + 1, self.rx])
        return u, previous, torch.stack(traces, -1)

    def forward(self, wavelet, pieces=None):
        v = F.pad(self.velocity[None, None], (PML,) * 4, mode="replicate")[0]
        v2dt2 = (v * DT) ** 2
        u = torch.zeros(SHOTS, NZ + 2 * PML, NX + 2 * PML, device=v.device)
        previous = torch.zeros_like(u)
        if pieces is None:
            return self.segment(v2dt2, u, previous, wavelet)[2]
        out = []
        for piece in wavelet.split(NT // pieces):
            u, previous, traces = checkpoint(self.segment, v2dt2, u, previous, piece, use_reentrant=False)
            out.append(traces)
        return torch.cat(out, -1)


def lowpass(traces, cutoff):
    spectrum = torch.fft.rfft(traces, n=2 * NT)
    f = torch.fft.rfftfreq(2 * NT, DT).to(traces.device)
    return torch.fft.irfft(spectrum * torch.exp(-((f / cutoff) ** 4)), n=2 * NT)[..., :NT]


torch.manual_seed(0)
device = torch.device("cuda")
true = 1500 + 1500 * torch.linspace(0, 1, NZ)[:, None].expand(NZ, NX).contiguous()
true[70:110, 120:200] += 600
smooth = F.avg_pool2d(F.pad(true[None, None], (20,) * 4, mode="replicate"), 41, stride=1)[0, 0]
wavelet = 1e6 * ricker(12.0, NT, DT, 0.08).to(device)
with torch.no_grad():
    observed = Propagator(true).to(device)(wavelet)
    observed += 0.01 * observed.std() * torch.randn_like(observed)
model = Propagator(smooth).to(device)
for cutoff, pieces in ((10.0, None), (20.0, 8)):
    optimizer = torch.optim.Adam(model.parameters(), lr=10.0)
    target = lowpass(observed, cutoff)
    for epoch in range(2):
        optimizer.zero_grad()
        predicted = lowpass(model(wavelet, pieces), cutoff)
        loss = F.mse_loss(predicted, target) / target.pow(2).mean()
        tv = (model.velocity[1:] - model.velocity[:-1]).abs().mean() + (model.velocity[:, 1:] - model.velocity[:, :-1]).abs().mean()
        (loss + 1e-5 * tv).backward()
        bound = torch.quantile(model.velocity.grad.abs(), 0.98)
        torch.nn.utils.clip_grad_value_(model.parameters(), bound.item())
        optimizer.step()
        with torch.no_grad():
            model.velocity.clamp_(1400.0, 4500.0)
        print(cutoff, epoch, loss.item(), flush=True)
print("error", (model.velocity.detach().cpu() - true).abs().mean().item())
