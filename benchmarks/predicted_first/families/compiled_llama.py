"""A Llama in bfloat16 with a checkpoint around each block, compiled as a whole: grouped keys, SwiGLU, rotary positions."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, GROUPS, LAYERS, HIDDEN, LENGTH, BATCH, WORDS = 2048, 16, 4, 4, 5632, 2048, 8, 32000
HEAD = WIDTH // HEADS


def rotate(x, cos, sin):
    one, two = x.float().chunk(2, -1)
    return torch.cat([one * cos - two * sin, two * cos + one * sin], -1).type_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_one, self.norm_two = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.key, self.value = (nn.Linear(WIDTH, GROUPS * HEAD, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        y = self.norm_one(x)
        q, k, v = (layer(y).unflatten(2, (-1, HEAD)).transpose(1, 2) for layer in (self.query, self.key, self.value))
        k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (rotate(k, cos, sin), v))
        y = F.scaled_dot_product_attention(rotate(q, cos, sin), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        y = self.norm_two(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.norm = nn.Embedding(WORDS, WIDTH), nn.RMSNorm(WIDTH)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(LAYERS)), nn.Linear(WIDTH, WORDS, bias=False)
        angles = torch.outer(torch.arange(LENGTH).float(), 10000 ** (-torch.arange(0, HEAD, 2) / HEAD))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids):
        x, cos, sin = self.words(ids), self.cos.float(), self.sin.float()
        for block in self.blocks:
            x = checkpoint(block, x, cos, sin, use_reentrant=False)
        return self.head(self.norm(x))


torch.manual_seed(0)
model = torch.compile(Llama().cuda().bfloat16())
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
for _ in range(4):
    ids = torch.randint(0, WORDS, (BATCH, LENGTH + 1), device="cuda")
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
