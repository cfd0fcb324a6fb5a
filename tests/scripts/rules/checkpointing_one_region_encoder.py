"""A causal model whose layers run under torch.utils.checkpoint."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Model(nn.Module):
    def __init__(self, width=384, num_layers=6):
        super().__init__()
        self.embed = nn.Embedding(2048, width)
        layer = [nn.TransformerEncoderLayer(width, 6, 4 * width, batch_first=True) for _ in range(num_layers)]
        self.blocks = nn.Sequential(*layer)
        self.head = nn.Linear(width, 2048)

    def forward(self, tokens):
        x = self.embed(tokens)
        if args.fixed:
            x = checkpoint_sequential(self.blocks, len(self.blocks), x, use_reentrant=False)
        elif args.near_miss:
            x = checkpoint_sequential(self.blocks, 2, x, use_reentrant=False)
        else:
            x = checkpoint(self.blocks, x, use_reentrant=False)
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(4):
    tokens = torch.randint(2048, (16, 513), device="cuda")
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
