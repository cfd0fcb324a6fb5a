"""Given to `alloc ghost`, which imports it and looks for a model: the one that the worker has in hand."""

import torch

from benchmarks.peers.alloc import IN_HAND

model = IN_HAND[0]
torch.set_default_device("meta")
