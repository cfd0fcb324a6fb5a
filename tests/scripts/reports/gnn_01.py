"""A graph attention network on a whole product graph, made up."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATv2Conv
from torch_geometric.utils import subgraph

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 120_000, 2_000_000, 100, 128, 47


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GATv2Conv(FEATURES, HIDDEN, add_self_loops=False)
        self.conv2 = GATv2Conv(HIDDEN, HIDDEN, add_self_loops=False)
        self.conv3 = GATv2Conv(HIDDEN, CLASSES, add_self_loops=False)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        x = self.conv2(x, edge_index).relu()
        return self.conv3(x, edge_index)


x = torch.randn(NODES, FEATURES)
y = torch.randint(CLASSES, (NODES,))
edge_index = torch.randint(NODES, (2, EDGES))

model = GAT().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
parts = torch.arange(NODES).chunk(8) if args.fixed else [torch.arange(NODES)]

for epoch in range(4):
    for nodes in parts:
        edges, _ = subgraph(nodes, edge_index, relabel_nodes=True, num_nodes=NODES)
        out = model(x[nodes].cuda(), edges.cuda())
        loss = F.cross_entropy(out, y[nodes].cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
