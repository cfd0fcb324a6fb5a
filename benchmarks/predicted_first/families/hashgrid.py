"""Instant-NGP in plain PyTorch: hashed corners of sixteen grids, an occupancy grid that drops samples, compositing."""

import torch
import torch.nn as nn
import torch.nn.functional as F

RAYS, SAMPLES, LEVELS, LOG2 = 8192, 128, 16, 19
PRIMES = (1, 2654435761, 805459861)
OFFSETS = torch.tensor([[[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)]]).cuda()


def hash_coords(coords):
    result = torch.zeros_like(coords)[..., 0]
    for i in range(coords.shape[-1]):
        result ^= coords[..., i] * PRIMES[i]
    return result & ((1 << LOG2) - 1)


class HashEmbedder(nn.Module):
    def __init__(self, base=16, finest=1024):
        super().__init__()
        growth = (finest / base) ** (1 / (LEVELS - 1))
        self.resolutions = [int(base * growth**i) for i in range(LEVELS)]
        self.embeddings = nn.ModuleList([nn.Embedding(2**LOG2, 2) for _ in range(LEVELS)])
        for e in self.embeddings:
            nn.init.uniform_(e.weight, a=-0.0001, b=0.0001)

    def trilinear(self, w, e):
        c00 = e[:, 0] * (1 - w[:, 0][:, None]) + e[:, 4] * w[:, 0][:, None]
        c01 = e[:, 1] * (1 - w[:, 0][:, None]) + e[:, 5] * w[:, 0][:, None]
        c10 = e[:, 2] * (1 - w[:, 0][:, None]) + e[:, 6] * w[:, 0][:, None]
        c11 = e[:, 3] * (1 - w[:, 0][:, None]) + e[:, 7] * w[:, 0][:, None]
        c0 = c00 * (1 - w[:, 1][:, None]) + c10 * w[:, 1][:, None]
        c1 = c01 * (1 - w[:, 1][:, None]) + c11 * w[:, 1][:, None]
        return c0 * (1 - w[:, 2][:, None]) + c1 * w[:, 2][:, None]

    def forward(self, x):
        out = []
        for resolution, table in zip(self.resolutions, self.embeddings):
            cell = 1.0 / resolution
            low = torch.floor(x / cell).long()
            corner = low.unsqueeze(1) + OFFSETS
            weights = (x - low * cell) / cell
            out.append(self.trilinear(weights, table(hash_coords(corner))))
        return torch.cat(out, dim=-1)


def sh(d):
    x, y, z = d.unbind(-1)
    parts = [0.282 * torch.ones_like(x), -0.488 * y, 0.488 * z, -0.488 * x, 1.092 * x * y, -1.092 * y * z]
    parts += [0.315 * (2 * z * z - x * x - y * y), -1.092 * x * z, 0.546 * (x * x - y * y)]
    return torch.stack(parts, -1)


class NGP(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = HashEmbedder()
        self.sigma = nn.Sequential(nn.Linear(2 * LEVELS, 64, bias=False), nn.ReLU(), nn.Linear(64, 16, bias=False))
        self.color = nn.Sequential(
            nn.Linear(15 + 9, 64, bias=False), nn.ReLU(), nn.Linear(64, 64, bias=False), nn.ReLU(), nn.Linear(64, 3, bias=False)
        )
        self.register_buffer("density", torch.zeros(64, 64, 64))
        self.register_buffer("occupied", torch.ones(64, 64, 64, dtype=torch.bool))

    def query(self, x):
        h = self.sigma(self.embed(x))
        return F.softplus(h[:, 0].float() - 1), h[:, 1:]

    @torch.no_grad()
    def update_grid(self, warmup, decay=0.95):
        cells = torch.stack(torch.meshgrid(*[torch.arange(64, device="cuda")] * 3, indexing="ij"), -1).view(-1, 3)
        if not warmup:
            cells = cells[torch.randint(0, len(cells), (64**3 // 4,), device="cuda")]
        points = (cells.float() + torch.rand(len(cells), 3, device="cuda")) / 64
        sigma, _ = self.query(points)
        new = torch.zeros_like(self.density).index_put_(tuple(cells.unbind(-1)), sigma)
        self.density = torch.maximum(self.density * decay, new)
        self.occupied = self.density > torch.clamp(self.density.mean(), max=0.01)

    def forward(self, origins, dirs):
        t = torch.linspace(0.05, 0.8, SAMPLES, device=origins.device).expand(len(origins), SAMPLES)
        t = t + torch.rand_like(t) * (0.75 / SAMPLES)
        x = (origins[:, None] + dirs[:, None] * t[..., None] + 1) / 2
        inside = ((x >= 0) & (x < 1)).all(-1)
        cell = (x.clamp(0, 1 - 1e-6) * 64).long()
        keep = inside & self.occupied[cell[..., 0], cell[..., 1], cell[..., 2]]
        sigma = torch.zeros(t.shape, device=t.device)
        rgb = torch.zeros(*t.shape, 3, device=t.device)
        found, feat = self.query(x[keep])
        colors = torch.sigmoid(self.color(torch.cat([feat, sh(dirs[:, None].expand_as(x)[keep])], -1))).float()
        sigma[keep] = found
        rgb[keep] = colors
        delta = torch.cat([t[:, 1:] - t[:, :-1], torch.full_like(t[:, :1], 1e10)], -1)
        alpha = 1 - torch.exp(-sigma * delta)
        trans = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        weights = alpha * trans
        return (weights[..., None] * rgb).sum(1), (weights * t).sum(1), -(weights * torch.log(weights + 1e-6)).sum(1)


model = NGP().cuda()
groups = [{"params": model.embed.parameters(), "eps": 1e-15}, {"params": [*model.sigma.parameters(), *model.color.parameters()], "weight_decay": 1e-6}]
optimizer = torch.optim.Adam(groups, lr=1e-2, betas=(0.9, 0.99))
scaler = torch.amp.GradScaler("cuda", init_scale=128.0)
for step in range(5):
    origins = (torch.rand(RAYS, 3) * 0.2 - 0.1).cuda()
    dirs = F.normalize(torch.randn(RAYS, 3), dim=-1).cuda()
    target = torch.rand(RAYS, 3).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        if step % 2 == 0:
            model.update_grid(warmup=step < 256)
        rgb, depth, entropy = model(origins, dirs)
        loss = F.mse_loss(rgb, target) + 1e-3 * entropy.mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(step, loss.item(), -10 * torch.log10(F.mse_loss(rgb.detach(), target)).item(), flush=True)
