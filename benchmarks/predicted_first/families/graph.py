"""A graph network of torch_geometric: attention between neighbours with edge features, pooled for each of many graphs."""

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GINEConv, TransformerConv, global_add_pool


class Network(nn.Module):
    def __init__(self, width=256, layers=6):
        super().__init__()
        self.nodes, self.edges = nn.Embedding(120, width), nn.Linear(16, width)
        self.attend = nn.ModuleList(
            TransformerConv(width, width // 4, heads=4, edge_dim=width, dropout=0.1) for _ in range(layers)
        )
        self.mix = nn.ModuleList(
            GINEConv(nn.Sequential(nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width)))
            for _ in range(layers)
        )
        self.out = nn.Linear(width, 12)

    def forward(self, kinds, edge_index, edge_features, graph_of):
        x, edges = self.nodes(kinds), self.edges(edge_features)
        for attend, mix in zip(self.attend, self.mix, strict=True):
            x = F.gelu(attend(x, edge_index, edges)) + x
            x = mix(x, edge_index, edges) + x
        return self.out(global_add_pool(x, graph_of, size=NUM_GRAPHS))


NUM_GRAPHS, NODES_EACH, EDGES_EACH = 1024, 24, 80
torch.manual_seed(0)
model = Network().cuda()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)

for _ in range(5):
    num_nodes = NUM_GRAPHS * NODES_EACH
    kinds = torch.randint(0, 120, (num_nodes,))
    offsets = torch.arange(NUM_GRAPHS).repeat_interleave(EDGES_EACH) * NODES_EACH
    edge_index = torch.randint(0, NODES_EACH, (2, NUM_GRAPHS * EDGES_EACH)) + offsets
    graph_of = torch.arange(NUM_GRAPHS).repeat_interleave(NODES_EACH)
    batch = [kinds, edge_index, torch.randn(edge_index.shape[1], 16), graph_of]
    predicted = model(*(t.cuda() for t in batch))
    loss = F.binary_cross_entropy_with_logits(predicted, torch.randint(0, 2, (NUM_GRAPHS, 12)).float().cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
