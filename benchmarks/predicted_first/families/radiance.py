"""A radiance field: points along rays, encoded by sines, through a coarse and a fine network, composed to colours."""

import torch
import torch.nn.functional as F
from torch import nn


def encode(x, bands):
    scaled = x[..., None] * 2.0 ** torch.arange(bands, device=x.device)
    return torch.cat([x, scaled.sin().flatten(-2), scaled.cos().flatten(-2)], -1)


class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first = nn.ModuleList(nn.Linear(63 if i == 0 else width, width) for i in range(5))
        self.second = nn.ModuleList(nn.Linear(63 + width if i == 0 else width, width) for i in range(3))
        self.density, self.feature = nn.Linear(width, 1), nn.Linear(width, width)
        self.colour = nn.Sequential(nn.Linear(width + 27, width // 2), nn.ReLU(), nn.Linear(width // 2, 3), nn.Sigmoid())

    def forward(self, points, directions):
        encoded = encode(points, 10)
        x = encoded
        for layer in self.first:
            x = F.relu(layer(x))
        x = torch.cat([encoded, x], -1)
        for layer in self.second:
            x = F.relu(layer(x))
        towards = encode(directions, 4)[:, None].expand(-1, points.shape[1], -1)
        return self.colour(torch.cat([self.feature(x), towards], -1)), F.softplus(self.density(x)).squeeze(-1)


def compose(field, origins, directions, depths):
    colours, density = field(origins[:, None] + directions[:, None] * depths[..., None], directions)
    gaps = torch.cat([depths[:, 1:] - depths[:, :-1], torch.full_like(depths[:, :1], 1e10)], 1)
    alpha = 1 - torch.exp(-density * gaps)
    passed = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], 1), 1)[:, :-1]
    weights = alpha * passed
    return (weights[..., None] * colours).sum(1), weights


def finer(depths, weights, count):
    chances = weights[:, 1:-1] + 1e-5
    sums = torch.cumsum(chances / chances.sum(-1, keepdim=True), -1)
    drawn = torch.rand(len(depths), count, device="cuda")
    place = torch.searchsorted(sums, drawn).clamp(max=sums.shape[1] - 1)
    return torch.sort(torch.cat([depths, depths.gather(1, place)], 1), 1).values


torch.manual_seed(0)
coarse, fine = Field().cuda(), Field().cuda()
optimizer = torch.optim.Adam([*coarse.parameters(), *fine.parameters()], 5e-4)
RAYS = 4096

for _ in range(4):
    origins, directions, wanted = (torch.randn(RAYS, 3).cuda() for _ in range(3))
    depths = torch.linspace(2, 6, 64, device="cuda").expand(RAYS, 64) + torch.rand(RAYS, 64, device="cuda") / 16
    rough, weights = compose(coarse, origins, directions, depths)
    exact, _ = compose(fine, origins, directions, finer(depths, weights.detach(), 128))
    loss = F.mse_loss(rough, wanted) + F.mse_loss(exact, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
