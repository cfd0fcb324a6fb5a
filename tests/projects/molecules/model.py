"""GINE or GATv2 layers, then attention among the atoms of each molecule, then a sum over them."""

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import MLP, BatchNorm, GATv2Conv, GINEConv, global_add_pool, global_max_pool
from torch_geometric.utils import to_dense_batch

from data import NUM_ATOMS, NUM_BONDS


class Net(nn.Module):
    """Twelve properties of each molecule of a batch."""

    def __init__(self, conv, width, depth):
        super().__init__()
        make = {
            "gine": lambda: GINEConv(MLP([width, 2 * width, width]), train_eps=True),
            "gat": lambda: GATv2Conv(width, width // 4, heads=4, edge_dim=width),
        }[conv]
        self.atoms = nn.Embedding(NUM_ATOMS, width)
        self.bonds = nn.Embedding(NUM_BONDS, width)
        self.convs = nn.ModuleList(make() for _ in range(depth))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth))
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.head = nn.LazyLinear(12)

    def forward(self, batch):
        x, bonds = self.atoms(batch.x), self.bonds(batch.edge_attr)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + F.relu(norm(conv(x, batch.edge_index, bonds)))
        dense, is_atom = to_dense_batch(x, batch.batch)
        mixed, _ = self.attention(dense, dense, dense, key_padding_mask=~is_atom, need_weights=False)
        x = x + mixed[is_atom]
        return self.head(torch.cat([global_add_pool(x, batch.batch), global_max_pool(x, batch.batch)], dim=1))
