"""Fine-tunes the middle of a video UNet: convolutions and self-attention over 64 x 64 latents."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class SelfAttention(nn.Module):
    def __init__(self, channels, num_heads=8):
        super().__init__()
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(32, channels)
        self.to_qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.to_out = nn.Linear(channels, channels)

    def attend(self, q, k, v):
        if args.fixed:
            return F.scaled_dot_product_attention(q, k, v)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        return scores.softmax(dim=-1) @ v

    def forward(self, x):
        batch, channels, height, width = x.shape
        tokens = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = (
            self.to_qkv(tokens).view(batch, -1, 3, self.num_heads, channels // self.num_heads).permute(2, 0, 3, 1, 4)
        )
        tokens = self.attend(q, k, v).transpose(1, 2).reshape(batch, -1, channels)
        return x + self.to_out(tokens).transpose(1, 2).view(batch, channels, height, width)


class ResBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.GroupNorm(32, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(32, channels),
            nn.SiLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )

    def forward(self, x):
        return x + self.body(x)


class UNetMiddle(nn.Module):
    def __init__(self, channels=320):
        super().__init__()
        self.conv_in = nn.Conv2d(4, channels, 3, padding=1)
        self.blocks = nn.Sequential(
            ResBlock(channels), SelfAttention(channels), ResBlock(channels), SelfAttention(channels), ResBlock(channels)
        )
        self.conv_out = nn.Conv2d(channels, 4, 3, padding=1)

    def forward(self, latents):
        return self.conv_out(self.blocks(self.conv_in(latents)))


unet = UNetMiddle().cuda()
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5)
scaler = torch.amp.GradScaler("cuda")

for step in range(8):
    latents = torch.randn(4, 4, 64, 64).cuda()
    noise = torch.randn_like(latents)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.mse_loss(unet(latents + noise), noise)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step}: loss {loss.item():.4f}")
