"""Trains a node classifier on sampled neighbourhoods: `python train.py --conv gat`."""

import argparse

import torch
import torch.nn.functional as F
from graph import Graph, NeighborLoader
from layers import Net


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--conv", choices=["sage", "gat"], default="sage")
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=20)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    graph = Graph(args.nodes, 8, args.features, args.classes)
    train_nodes, test_nodes = torch.randperm(args.nodes).split([4 * args.batch_size, args.nodes - 4 * args.batch_size])
    loader = NeighborLoader(graph, train_nodes, args.batch_size, fanouts=[10, 5])
    model = Net(args.features, args.width, args.classes, conv=args.conv).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    features = graph.x.to(device)
    for epoch in range(args.epochs):
        train(model, optimizer, loader, features, graph.y)
        print(f"epoch {epoch}: accuracy {test(model, graph, features, test_nodes):.3f}")


def train(model, optimizer, loader, features, labels):
    model.train()
    for ids, edges, num_seeds in loader:
        ids, edges = ids.to(features.device), edges.to(features.device)
        y = labels[ids[:num_seeds].cpu()].to(features.device)
        optimizer.zero_grad()
        out = model(features[ids], edges)[:num_seeds]
        F.cross_entropy(out, y).backward()
        optimizer.step()


@torch.no_grad()
def test(model, graph, features, nodes):
    """The accuracy with the whole graph in one pass."""
    model.eval()
    out = model(features, graph.edges.to(features.device))
    nodes = nodes.to(features.device)
    right = out.argmax(dim=-1)[nodes] == graph.y.to(features.device)[nodes]
    return int(right.sum()) / len(nodes)


if __name__ == "__main__":
    main()
