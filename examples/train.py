"""Train a small language model on made-up tokens: `python train.py`, or under torchrun."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--seq", type=int, default=1024)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--layers", type=int, default=8)
parser.add_argument("--vocab", type=int, default=16384)
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()


class Attention(nn.Module):
    """Every position looks at those before it."""

    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        query, key, value = (part.unflatten(-1, (-1, 64)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then two layers at each position."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class LanguageModel(nn.Module):
    """Guesses the next token."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab, args.width)
        self.places = nn.Embedding(args.seq, args.width)
        self.blocks = nn.ModuleList(Block(args.width) for _ in range(args.layers))
        self.head = nn.Linear(args.width, args.vocab, bias=False)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(x)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu", int(os.environ.get("LOCAL_RANK", 0)))
torch.manual_seed(0)
model = LanguageModel().to(device)
if "RANK" in os.environ:
    torch.distributed.init_process_group()
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
tokens = torch.randint(args.vocab, (4096, args.seq + 1))
loader = DataLoader(TensorDataset(tokens), args.batch, shuffle=True, drop_last=True)

step = 0
while step < args.steps:
    for (batch,) in loader:
        batch = batch.to(device)
        logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}")
