"""Sequences through structured states (S4): complex kernels by a Vandermonde product, long convolutions by FFT, two rates."""

import math

import torch
import torch.nn.functional as F
from torch import nn

BATCH, LENGTH, WIDTH, STATES, LAYERS = 8, 8192, 256, 32, 6


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(torch.rand(WIDTH) * (math.log(0.1) - math.log(0.001)) + math.log(0.001))
        self.out = nn.Parameter(torch.view_as_real(torch.randn(2, WIDTH, STATES, dtype=torch.cfloat)))
        self.decay = nn.Parameter(torch.log(0.5 * torch.ones(WIDTH, STATES)))
        self.turn = nn.Parameter(math.pi * torch.arange(STATES).repeat(WIDTH, 1).float())

    def forward(self, length):
        step, poles = self.step.exp(), -self.decay.exp() + 1j * self.turn
        moved = poles * step[:, None]
        powers = torch.exp(moved[..., None] * torch.arange(length, device=moved.device))
        weights = torch.view_as_complex(self.out) * (moved.exp() - 1) / poles
        return 2 * torch.einsum("chn,hnl->chl", weights, powers).real


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel, self.skip = Kernel(), nn.Parameter(torch.randn(WIDTH))
        self.out, self.norm, self.drop = nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.LayerNorm(WIDTH), nn.Dropout1d(0.1)

    def forward(self, x):
        u = self.norm(x).transpose(1, 2)
        length = u.shape[-1]
        forth, back = self.kernel(length)
        kernel = F.pad(forth, (0, length)) + F.pad(back.flip(-1), (length, 0))
        y = torch.fft.irfft(torch.fft.rfft(kernel, n=2 * length) * torch.fft.rfft(u, n=2 * length), n=2 * length)[..., :length]
        y = self.drop(F.gelu(y + u * self.skip[:, None]))
        return x + F.glu(self.out(y), 1).transpose(1, 2)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, WIDTH), *(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)).cuda()
head = nn.Linear(WIDTH, 10).cuda()
slow = [p for n, p in model.named_parameters() if "kernel" in n]
fast = [p for n, p in model.named_parameters() if "kernel" not in n]
optimizer = torch.optim.AdamW([{"params": fast}, {"params": head.parameters()}, {"params": slow, "lr": 1e-3, "weight_decay": 0.0}], 4e-3, weight_decay=0.01)
for _ in range(3):
    x, labels = torch.randn(BATCH, LENGTH, 1).cuda(), torch.randint(0, 10, (BATCH,)).cuda()
    loss = F.cross_entropy(head(model(x).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
