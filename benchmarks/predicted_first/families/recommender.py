"""A recommender of many categories: bags of embeddings with sparse gradients, dot products of all pairs, two optimizers."""

import torch
import torch.nn.functional as F
from torch import nn

SIZES = [2_000_000, 1_000_000, 500_000, 200_000, 100_000, 50_000, 10_000, 5_000, 1_000, 500]


class Recommender(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(size, width, mode="sum", sparse=True) for size in SIZES)
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        pairs = (len(SIZES) + 1) * len(SIZES) // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
        self.register_buffer("pairs", torch.tril_indices(len(SIZES) + 1, len(SIZES) + 1, -1))

    def forward(self, numbers, ids, offsets):
        x = self.bottom(numbers)
        found = [bag(i, offsets) for bag, i in zip(self.bags, ids, strict=True)]
        all_of_them = torch.stack([x, *found], 1)
        products = torch.bmm(all_of_them, all_of_them.transpose(1, 2))
        return self.top(torch.cat([x, products[:, self.pairs[0], self.pairs[1]]], 1)).squeeze(1)


torch.manual_seed(0)
model = Recommender().cuda()
sparse = torch.optim.SparseAdam(list(model.bags.parameters()), 1e-3)
dense = torch.optim.Adagrad([*model.bottom.parameters(), *model.top.parameters()], 1e-2)
BATCH, PER_BAG = 16384, 4

for _ in range(4):
    numbers = torch.rand(BATCH, 13).cuda()
    ids = [torch.randint(0, size, (BATCH * PER_BAG,)).cuda() for size in SIZES]
    offsets = torch.arange(0, BATCH * PER_BAG, PER_BAG).cuda()
    loss = F.binary_cross_entropy_with_logits(model(numbers, ids, offsets), torch.randint(0, 2, (BATCH,)).float().cuda())
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
    print("loss", loss.item(), flush=True)
