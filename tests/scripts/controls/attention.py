"""Train a small decoder: attention written out or fused, in float32 or under autocast, with or without a cache."""

import argparse
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--attention", default="explicit", choices=["explicit", "sdpa", "no-mask"])
parser.add_argument("--dropout", type=float, default=0.0, help="of the attention weights")
parser.add_argument("--own-dropout", action="store_true", help="with torch.rand")
parser.add_argument("--autocast", default="none", choices=["none", "bfloat16"])
parser.add_argument("--weights", default="float32", choices=["float32", "bfloat16"])
parser.add_argument("--checkpoint", default="none", choices=["none", "reentrant", "non-reentrant"])
parser.add_argument("--use-cache", action="store_true", help="keeps keys and values, as generation does")
parser.add_argument("--offload", action="store_true", help="keeps what autograd saves elsewhere")
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

VOCABULARY, WIDTH, HEADS, LENGTH = 40, 32, 4, 16


class Cache:
    """Keys and values of the tokens seen so far, one pair a layer."""

    def __init__(self):
        self.layers = {}

    def update(self, layer: int, keys, values):
        if layer in self.layers:
            keys, values = (torch.cat(pair, 2) for pair in zip(self.layers[layer], (keys, values), strict=True))
        self.layers[layer] = keys, values
        return keys, values


class Attention(nn.Module):
    def __init__(self, layer: int):
        super().__init__()
        self.layer = layer
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, cache):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.update(self.layer, k, v)
        if args.attention == "sdpa":
            y = scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=args.dropout)
        else:
            y = self.weights(q, k) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))

    def weights(self, q, k):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        if args.attention != "no-mask":
            scores = scores.masked_fill(future, float("-inf"))
        weights = scores.softmax(-1)
        if args.own_dropout:
            return weights * (torch.rand(weights.shape) >= args.dropout) / (1 - args.dropout)
        return dropout(weights, args.dropout)


class Block(nn.Module):
    def __init__(self, layer: int):
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(WIDTH), Attention(layer)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache=None):
        x = x + self.attention(self.attention_norm(x), cache)
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nn.Module):
    def __init__(self, layers: int = 2):
        super().__init__()
        self.embedding, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block(layer) for layer in range(layers))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        cache = Cache() if args.use_cache else None
        for block in self.blocks:
            if args.checkpoint == "none":
                x = block(x, cache)
            else:
                x = checkpoint(block, x, cache, use_reentrant=args.checkpoint == "reentrant")
        return self.norm(x) @ self.embedding.weight.T


torch.manual_seed(0)
model = Decoder()
if args.weights == "bfloat16":
    model = model.to(torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
precision = nullcontext() if args.autocast == "none" else torch.autocast("cpu", torch.bfloat16)
saved = torch.autograd.graph.save_on_cpu() if args.offload else nullcontext()
data = torch.Generator().manual_seed(1)
for step in range(args.steps):
    tokens = torch.randint(VOCABULARY, (8, LENGTH + 1), generator=data)
    with precision, saved:
        loss = cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
