"""A compiled U-Net that removes noise: group norms, SiLU, skips, attention in the middle, bf16 autocast."""

import torch
import torch.nn.functional as F
from torch import nn

BATCH, SIZE, WIDTH = 128, 64, 128


class Residual(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.norm_one, self.conv_one = nn.GroupNorm(32, before), nn.Conv2d(before, after, 3, padding=1)
        self.norm_two, self.conv_two = nn.GroupNorm(32, after), nn.Conv2d(after, after, 3, padding=1)
        self.time = nn.Linear(4 * WIDTH, after)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, time):
        y = self.conv_one(F.silu(self.norm_one(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.conv_two(F.silu(self.norm_two(y))) + self.skip(x)


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = (
            nn.GroupNorm(32, width),
            nn.Conv2d(width, 3 * width, 1),
            nn.Conv2d(width, width, 1),
        )

    def forward(self, x):
        q, k, v = (t.flatten(2).transpose(1, 2).unsqueeze(1) for t in self.qkv(self.norm(x)).chunk(3, 1))
        mixed = F.scaled_dot_product_attention(q, k, v).squeeze(1).transpose(1, 2).reshape(x.shape)
        return x + self.out(mixed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, 4 * WIDTH))
        self.first, self.last = nn.Conv2d(3, WIDTH, 3, padding=1), nn.Conv2d(WIDTH, 3, 3, padding=1)
        self.down = nn.ModuleList([Residual(WIDTH, WIDTH), Residual(WIDTH, 2 * WIDTH)])
        self.middle, self.attention = Residual(2 * WIDTH, 2 * WIDTH), Attention(2 * WIDTH)
        self.up = nn.ModuleList([Residual(4 * WIDTH, WIDTH), Residual(2 * WIDTH, WIDTH)])

    def forward(self, x, steps):
        angles = steps[:, None] * torch.exp(-torch.arange(WIDTH // 2, device=x.device) / 8)
        time = self.time(torch.cat([angles.cos(), angles.sin()], 1))
        x, kept = self.first(x), []
        for block in self.down:
            x = block(x, time)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.attention(self.middle(x, time))
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), kept.pop()], 1), time)
        return self.last(F.silu(x))


torch.manual_seed(0)
model = Net().cuda()
denoise = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for _ in range(4):
    clean = torch.randn(BATCH, 3, SIZE, SIZE, device="cuda")
    noise, steps = torch.randn_like(clean), torch.rand(BATCH, device="cuda") * 1000
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.mse_loss(denoise(clean * 0.6 + noise * 0.8, steps), noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
