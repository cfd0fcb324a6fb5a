"""Attention written by hand that goes over the queries in chunks once the card cannot hold all scores; evaluated on long rows."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def attend(self, q, k, v):
        return ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).softmax(-1) @ v

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        try:
            y = self.attend(q, k, v)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            y = torch.cat([self.attend(part, k, v) for part in q.split(256, dim=2)], dim=2)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width=512, heads=8):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(x)


torch.manual_seed(0)
model = nn.Sequential(*(Block() for _ in range(6)), nn.Linear(512, 32)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for length in (512, 768, 512, 1024):
    x, y = torch.randn(8, length, 512).cuda(), torch.randint(0, 32, (8, length)).cuda()
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{length}: loss {loss.item():.3f}", flush=True)
del x, y, loss
optimizer.zero_grad(set_to_none=True)
model.eval()
with torch.inference_mode():
    for length in (2048, 4096, 6144):
        print(length, model(torch.randn(8, length, 512, device="cuda")).mean().item(), flush=True)
