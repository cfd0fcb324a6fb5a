"""Trains a small stack of blocks with checkpointing that is in vain.

`one` covers all blocks at once, `eval` has the model in eval mode, where its forward leaves checkpointing out, `unread`
sets a flag that no forward reads, and `reentrant` has inputs that need no gradient. `--near-miss` and `--fixed`
checkpoint each block.
"""

import argparse

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, DEPTH = 128, 8


class Block(nn.Module):
    """A residual block, wide inside."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        """x: [B, S, D]."""
        return x + self.net(x)


class Stack(nn.Module):
    """Blocks, checkpointed as `how` says."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 10)

    def body(self, x):
        """All blocks."""
        for block in self.blocks:
            x = block(x)
        return x

    def each(self, x, use_reentrant):
        """All blocks, one region each."""
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=use_reentrant)
        return x

    def forward(self, x):
        """x: [B, S, D]."""
        if self.how == "one":
            x = checkpoint(self.body, x, use_reentrant=False)
        elif self.how == "reentrant" or (self.how in ("eval", "each") and self.use_checkpoint and self.training):
            x = self.each(x, use_reentrant=self.how == "reentrant")
        else:
            x = self.body(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=["one", "eval", "unread", "reentrant"])
    parser.add_argument("--near-miss", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    model = Stack("each" if args.near_miss or args.fixed else args.how).cuda()
    model.use_checkpoint = model.how in ("eval", "unread", "each")
    model.train(model.how != "eval")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(16, 256, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
