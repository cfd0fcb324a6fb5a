"""Trains a small encoder whose attention is written out: the scores of every head are kept for the backward.

`--near-miss` is a classifier over as many classes as it has positions, without attention; `--fixed` calls the fused
kernel.
"""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, WIDTH, HEADS = 512, 128, 8


class Attention(nn.Module):
    """Self-attention; `fused` leaves it to one kernel."""

    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        """x: [B, S, D]."""
        batch, length, _ = x.shape
        q, k, v = self.project(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
        else:
            weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(dim=-1)
            mixed = F.dropout(weights, 0.1) @ v
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))


class Choice(nn.Module):
    """A softmax over as many classes as there are positions, mixed into the features: no attention."""

    def __init__(self):
        super().__init__()
        self.classes = nn.Linear(WIDTH, LENGTH)
        self.out = nn.Linear(LENGTH, WIDTH)

    def forward(self, x):
        """x: [B, S, D]."""
        return x + self.out(self.classes(x).softmax(dim=-1))


def main():
    """Three steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--near-miss", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    layers = [Choice() if args.near_miss else Attention(args.fixed) for _ in range(4)]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = torch.randn(4, LENGTH, WIDTH, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
