"""A compiled decoder: torch.compile over the model, flash attention, bf16 autocast, accumulated, a rotary embedding by hand."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, LENGTH, BATCH, WORDS = 768, 12, 12, 1024, 12, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_one, self.norm_two = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm_one(x)).chunk(3, 2))
        q, k = (torch.cat([a * cos - b * sin, a * sin + b * cos], 3).type_as(v) for a, b in (q.chunk(2, 3), k.chunk(2, 3)))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.norm_two(x))).square())


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        angles = torch.outer(torch.arange(LENGTH).float(), 10000 ** (-torch.arange(0, WIDTH // HEADS, 2) / (WIDTH // HEADS)))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids, wanted):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), wanted.flatten())


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
model = torch.compile(model)

for _ in range(4):
    for _ in range(2):
        ids = torch.randint(0, WORDS, (BATCH, LENGTH + 1)).pin_memory().cuda(non_blocking=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(ids[:, :-1], ids[:, 1:]) / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item(), flush=True)
