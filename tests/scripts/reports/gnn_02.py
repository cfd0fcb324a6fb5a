"""Classifies molecules and proteins of 100 to 10000 atoms with a GIN, rare classes drawn more often."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import WeightedRandomSampler
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, DynamicBatchSampler
from torch_geometric.nn import GINConv, global_mean_pool

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

random.seed(1)
torch.manual_seed(1)


def graph(num_nodes):
    edge_index = torch.randint(num_nodes, (2, 4 * num_nodes))
    return Data(x=torch.randn(num_nodes, 32), edge_index=edge_index, y=torch.tensor([int(num_nodes > 1000)]))


class GIN(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Linear(32, width)
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)))
            for _ in range(4)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, batch):
        x = self.embed(batch.x)
        for conv in self.convs:
            x = conv(x, batch.edge_index).relu()
        return self.head(global_mean_pool(x, batch.batch))


graphs = [graph(random.randint(100, 600)) for _ in range(990)] + [graph(random.randint(8000, 10000)) for _ in range(10)]
if args.fixed:
    loader = DataLoader(graphs, batch_sampler=DynamicBatchSampler(graphs, max_num=12000, mode="node", shuffle=True))
else:
    weights = [1.0 if data.num_nodes < 1000 else 2.0 for data in graphs]
    loader = DataLoader(graphs, batch_size=32, sampler=WeightedRandomSampler(weights, len(graphs)))

model = GIN().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for batch in loader:
    batch = batch.to("cuda")
    loss = F.cross_entropy(model(batch), batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{batch.num_nodes} nodes: loss {loss.item():.4f}")
