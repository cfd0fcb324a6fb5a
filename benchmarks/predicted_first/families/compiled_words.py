"""A compiled GPT-2 of four layers: dropout, learned positions, 50,257 words that no kernel likes, the loss inside."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, LENGTH, BATCH, WORDS = 1024, 16, 4, 1024, 24, 50257


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_one, self.norm_two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.1))

    def forward(self, x):
        q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm_one(x)).chunk(3, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + F.dropout(self.out(mixed), 0.1, self.training)
        return x + self.feed(self.norm_two(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids, wanted):
        x = F.dropout(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)), 0.1, self.training)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), wanted.flatten())


torch.manual_seed(0)
model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
compiled = torch.compile(model)
for _ in range(4):
    ids = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        logits, loss = compiled(ids, ids.roll(-1, 1))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item(), flush=True)
