"""All weights of a GPT trained with Adam's moments in 8 bits, those of its embeddings in 32, and a Lion for the head."""

import bitsandbytes as bnb
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))


torch.manual_seed(0)
embedding = bnb.nn.StableEmbedding(32000, 1536).cuda()
blocks = nn.Sequential(*(Block(1536, 12) for _ in range(12))).cuda()
head = nn.Linear(1536, 32000, bias=False).cuda()
adam = bnb.optim.AdamW8bit([*embedding.parameters(), *blocks.parameters()], lr=1e-4)
lion = bnb.optim.PagedLion8bit(head.parameters(), lr=1e-5)
for step in range(5):
    ids = torch.randint(0, 32000, (4, 1024), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = F.cross_entropy(head(blocks(embedding(ids))).flatten(0, 1), ids.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(blocks.parameters(), 1.0)
    for optimizer in (adam, lion):
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item(), flush=True)
