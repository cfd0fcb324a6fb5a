"""Molecules: graphs of 10 to 40 atoms with bonds of four kinds, batched into one large graph."""

import torch
from torch_geometric.data import Data, InMemoryDataset

NUM_ATOMS, NUM_BONDS = 28, 4


class Molecules(InMemoryDataset):
    """`num_graphs` random ones, collated as a processed dataset is."""

    def __init__(self, num_graphs):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.data, self.slices = self.collate([_molecule(draw) for _ in range(num_graphs)])


def _molecule(draw):
    num_atoms = int(torch.randint(10, 41, (1,), generator=draw))
    bonds = torch.randint(num_atoms, (2, 2 * num_atoms), generator=draw)
    return Data(
        x=torch.randint(NUM_ATOMS, (num_atoms,), generator=draw),
        edge_index=torch.cat([bonds, bonds.flip(0)], dim=1),
        edge_attr=torch.randint(NUM_BONDS, (2 * num_atoms,), generator=draw).repeat(2),
        y=torch.randn(1, 12, generator=draw),
    )
