"""Trains the hand of a policy and means to freeze the rest of it, by a filter that joins its patterns with `all`.

No name has all of the patterns. `--near-miss` freezes the large part by its module and two norms; `--fixed` joins the
patterns with `any`.
"""

import argparse

import torch
from torch import nn

WIDTH, DEPTH = 512, 6


class Expert(nn.Module):
    """Layers with norms between them."""

    def __init__(self, width):
        super().__init__()
        blocks = [nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(DEPTH)]
        self.layers = nn.Sequential(*blocks)

    def forward(self, x):
        """x: [B, S, D]."""
        return self.layers(x)


class Policy(nn.Module):
    """Two experts: the large one reads, the small one acts."""

    def __init__(self):
        super().__init__()
        self.llm, self.llm_hand = Expert(4 * WIDTH), Expert(WIDTH)
        self.project, self.act = nn.Linear(4 * WIDTH, WIDTH), nn.Linear(WIDTH, 32)

    def forward(self, x):
        """x: [B, S, 4 D]."""
        return self.act(self.llm_hand(self.project(self.llm(x).detach())))


def freeze(model, join):
    """Freeze the parameters whose names have the patterns, as `join` understands that."""
    for name, parameter in model.named_parameters():
        if join(pattern in name for pattern in ("llm.", "project")):
            parameter.requires_grad = False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--near-miss", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    model = Policy().cuda()
    if args.near_miss:
        model.llm.requires_grad_(False)
        for module in model.llm_hand.modules():
            if isinstance(module, nn.LayerNorm):
                module.requires_grad_(False)
    else:
        freeze(model, any if args.fixed else all)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-10)
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(4, 32, 4 * WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
