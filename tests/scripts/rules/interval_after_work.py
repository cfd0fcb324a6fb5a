"""Trains on graphs whose spectral positions are computed for all of them, of which every tenth is used.

`--near-miss` splits what it computes into its even and odd parts, and uses both; `--fixed` takes the tenth part before.
"""

import argparse

import torch
from torch import nn

NODES, GRAPHS = 19, 1920


class Positions(nn.Module):
    """The eigenvectors of graphs, every `interval`-th of them."""

    def __init__(self, how, interval=10):
        super().__init__()
        self.how, self.interval = how, interval
        self.project = nn.Linear(NODES, 32)

    def forward(self, graphs):
        """graphs: [G, N, N]."""
        if self.how == "fixed":
            _, vectors = torch.linalg.eigh(graphs[:: self.interval])
            return self.project(vectors)
        if self.how == "near miss":
            _, rotated = torch.linalg.eigh(graphs)
            return self.project(rotated[0::2]) - self.project(rotated[1::2])
        _, vectors = torch.linalg.eigh(graphs)
        vectors = vectors.view(GRAPHS, NODES, NODES)
        part = vectors[:: self.interval]
        return self.project(part)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--near-miss", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    edges = nn.Linear(NODES, NODES).cuda()
    positions = Positions("fixed" if args.fixed else "near miss" if args.near_miss else "after").cuda()
    optimizer = torch.optim.AdamW([*edges.parameters(), *positions.parameters()])
    for _ in range(4):
        optimizer.zero_grad()
        weights = edges(torch.rand(GRAPHS, NODES, NODES, device="cuda"))
        positions(weights + weights.transpose(1, 2)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
