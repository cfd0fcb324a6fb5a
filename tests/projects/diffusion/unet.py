"""A small UNet2D: residual blocks with the time, attention at the lowest resolution."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def time_embedding(t, dim):
    """Sinusoids (batch, dim) of the time steps (batch,)."""
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    angles = t[:, None].float() * freqs[None]
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, time_dim, dropout=0.1):
        super().__init__()
        self.norm1 = nn.GroupNorm(8, c_in)
        self.conv1 = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.time = nn.Linear(time_dim, c_out)
        self.norm2 = nn.GroupNorm(8, c_out)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(emb))[:, :, None, None]
        return self.skip(x) + self.conv2(self.dropout(F.silu(self.norm2(h))))


class Attention(nn.Module):
    def __init__(self, channels, heads=4):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.out = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, 3, self.heads, c // self.heads, h * w).transpose(3, 4).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(2, 3).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, channels=3, width=64, mults=(1, 2, 4)):
        super().__init__()
        time_dim = 4 * width
        self.width = width
        self.time_mlp = nn.Sequential(nn.Linear(width, time_dim), nn.SiLU(), nn.Linear(time_dim, time_dim))
        widths = [width * mult for mult in mults]
        self.stem = nn.Conv2d(channels, width, 3, padding=1)
        self.downs = nn.ModuleList()
        for c_in, c_out in zip([width, *widths[:-1]], widths, strict=True):
            down = nn.Conv2d(c_out, c_out, 3, stride=2, padding=1)
            self.downs.append(nn.ModuleList([ResBlock(c_in, c_out, time_dim), down]))
        self.mid1 = ResBlock(widths[-1], widths[-1], time_dim)
        self.attention = Attention(widths[-1])
        self.mid2 = ResBlock(widths[-1], widths[-1], time_dim)
        self.ups = nn.ModuleList()
        for c_in, c_out in zip(reversed(widths), [*reversed(widths[:-1]), width], strict=True):
            self.ups.append(nn.ModuleList([nn.Upsample(scale_factor=2), ResBlock(2 * c_in, c_out, time_dim)]))
        self.head = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, channels, 3, padding=1))

    def forward(self, x, t):
        emb = self.time_mlp(time_embedding(t, self.width))
        x = self.stem(x)
        skips = []
        for block, down in self.downs:
            x = block(x, emb)
            skips.append(x)
            x = down(x)
        x = self.mid2(self.attention(self.mid1(x, emb)), emb)
        for up, block in self.ups:
            x = block(torch.cat([up(x), skips.pop()], dim=1), emb)
        return self.head(x)
