"""Rain on radar, frame after frame: ConvLSTM encoder and forecaster, scheduled sampling, sequences that grow from epoch to epoch."""

import random

import torch
from torch import nn
import torch.nn.functional as F

HEIGHT, WIDTH, BATCH = 192, 192, 8
CURRICULUM = ((5, 5), (5, 10), (10, 10), (10, 15))  # frames seen, frames to come


class ConvLSTMCell(nn.Module):
    def __init__(self, in_channels, channels, kernel=5):
        super().__init__()
        self.channels = channels
        self.conv = nn.Conv2d(in_channels + channels, 4 * channels, kernel, padding=kernel // 2)
        self.norm = nn.GroupNorm(4 * channels // 32, 4 * channels)
        self.w_ci = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.w_cf = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.w_co = nn.Parameter(torch.zeros(1, channels, 1, 1))

    def forward(self, x, state):
        h, c = state
        gates = self.norm(self.conv(torch.cat((x, h), dim=1)))
        i, f, g, o = torch.split(gates, self.channels, dim=1)
        i = torch.sigmoid(i + self.w_ci * c)
        f = torch.sigmoid(f + self.w_cf * c)
        c = f * c + i * torch.tanh(g)
        h = torch.sigmoid(o + self.w_co * c) * torch.tanh(c)
        return h, c

    def init_hidden(self, batch, shape):
        return (
            torch.zeros(batch, self.channels, *shape, device=self.conv.weight.device),
            torch.zeros(batch, self.channels, *shape, device=self.conv.weight.device),
        )


class EncoderForecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 32, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True))
        self.down = nn.Sequential(nn.Conv2d(64, 64, 3, 2, 1), nn.LeakyReLU(0.2, inplace=True))
        self.enc = nn.ModuleList([ConvLSTMCell(32, 64), ConvLSTMCell(64, 96)])
        self.dec = nn.ModuleList([ConvLSTMCell(64 + 96, 64), ConvLSTMCell(64, 96)])
        self.up = nn.ConvTranspose2d(96, 96, 4, 2, 1)
        self.head = nn.Sequential(
            nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.Conv2d(32, 1, 1)
        )

    def step(self, frame, cells, state):
        x = self.stem(frame)
        if cells is self.enc:
            state[0] = cells[0](x, state[0])
            state[1] = cells[1](self.down(state[0][0]), state[1])
            return None
        x = torch.cat([x, x, self.up(state[1][0])], dim=1)
        state[0] = cells[0](x, state[0])
        state[1] = cells[1](self.down(state[0][0]), state[1])
        return torch.sigmoid(self.head(state[0][0]))

    def forward(self, seen, future=None, horizon=10, teacher=0.0):
        b, _, _, h, w = seen.shape
        state = [cell.init_hidden(b, (h // s, w // s)) for cell, s in zip(self.enc, (2, 4))]
        for t in range(seen.size(1)):
            self.step(seen[:, t], self.enc, state)
        frame, out = seen[:, -1], []
        for t in range(horizon):
            frame = self.step(frame, self.dec, state)
            out.append(frame)
            if future is not None and random.random() < teacher:
                frame = future[:, t]
        return torch.stack(out, dim=1)


def radar(batch, frames):
    """Blobs of rain that drift, made where they are used."""
    y = torch.linspace(0, 1, HEIGHT, device="cuda").view(1, 1, -1, 1)
    x = torch.linspace(0, 1, WIDTH, device="cuda").view(1, 1, 1, -1)
    t = torch.arange(frames, device="cuda").view(1, -1, 1, 1) / frames
    total = torch.zeros(batch, frames, HEIGHT, WIDTH, device="cuda")
    for _ in range(12):
        p = torch.rand(5, batch, 1, 1, 1, device="cuda")
        total += torch.exp(-((x - p[0] - 0.3 * (p[1] - 0.5) * t) ** 2 + (y - p[2] - 0.3 * (p[3] - 0.5) * t) ** 2) / (0.002 + 0.01 * p[4]))
    return total.clamp_(0, 1).unsqueeze(2)


def weighted_loss(pred, target):
    """Heavy rain counts for more, and both kinds of error are balanced."""
    weights = torch.ones_like(target)
    for threshold, w in ((0.2, 2.0), (0.4, 5.0), (0.6, 10.0), (0.8, 30.0)):
        weights = torch.where(target >= threshold, torch.full_like(weights, w), weights)
    return (weights * (pred - target) ** 2).mean() + (weights * (pred - target).abs()).mean()


torch.manual_seed(0)
random.seed(0)
model = EncoderForecaster().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3], gamma=0.5)
teacher = 0.9
for epoch, (seen, ahead) in enumerate(CURRICULUM):
    frames = radar(BATCH, seen + ahead)
    output = model(frames[:, :seen], frames[:, seen:], ahead, teacher)
    loss = weighted_loss(output, frames[:, seen:])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), clip_value=50.0)
    optimizer.step()
    scheduler.step()
    teacher = max(0.0, teacher - 0.3)
    print(f"epoch {epoch} frames {seen}+{ahead} loss {loss.item():.5f}", flush=True)
model.eval()
with torch.no_grad():
    frames = radar(2 * BATCH, 30)
    forecast = model(frames[:, :10], horizon=20)
    hits = ((forecast > 0.5) & (frames[:, 10:] > 0.5)).sum((0, 2, 3, 4)).float()
    either = ((forecast > 0.5) | (frames[:, 10:] > 0.5)).sum((0, 2, 3, 4)).float()
    print("CSI", (hits / (either + 1)).tolist()[:3], F.mse_loss(forecast, frames[:, 10:]).item())
