"""A diffusion transformer (DiT-XL/2): modulated blocks, an average of the weights, bf16 autocast, latents of 64 x 64."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(c)[:, None].chunk(6, -1)
        q, k, v = self.qkv(self.norm1(x) * (1 + scale1) + shift1).unflatten(-1, (3, self.heads, -1)).unbind(2)
        attended = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + gate1 * self.proj(attended.transpose(1, 2).flatten(2))
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiT(nn.Module):
    def __init__(self, width=1152, depth=28, heads=16):
        super().__init__()
        self.patch = nn.Conv2d(4, width, 2, 2)
        self.positions = nn.Parameter(torch.randn(1, 1024, width) * 0.02, requires_grad=False)
        self.time = nn.Sequential(nn.Linear(256, width), nn.SiLU(), nn.Linear(width, width))
        self.label = nn.Embedding(1001, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm, self.out = nn.LayerNorm(width, elementwise_affine=False), nn.Linear(width, 32)

    def forward(self, x, t, y):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.positions
        angles = t[:, None] * torch.exp(-9.2 * torch.arange(128, device=t.device) / 128)
        c = self.time(torch.cat([angles.cos(), angles.sin()], -1)) + self.label(y)
        for block in self.blocks:
            x = block(x, c)
        x = self.out(self.norm(x)).unflatten(1, (32, 32)).unflatten(-1, (2, 2, 8))
        return torch.einsum("nhwpqc->nchpwq", x).flatten(4).flatten(2, 3)


model = DiT().cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0)

for _ in range(4):
    latents, labels = torch.randn(24, 4, 64, 64, device="cuda"), torch.randint(0, 1000, (24,), device="cuda")
    steps = torch.randint(0, 1000, (24,), device="cuda")
    noise = torch.randn_like(latents)
    share = (steps.float() / 1000)[:, None, None, None]
    noisy = (1 - share).sqrt() * latents + share.sqrt() * noise
    with torch.autocast("cuda", torch.bfloat16):
        predicted, _ = model(noisy, steps, labels).chunk(2, 1)
        loss = F.mse_loss(predicted.float(), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average.parameters(), model.parameters(), strict=True):
            old.lerp_(new, 0.0001)
    print("loss", loss.item(), flush=True)
