"""Message passing by hand: GraphSAGE with index_add_, and attention with scatter_reduce."""

import torch
import torch.nn.functional as F
from torch import nn


class SAGEConv(nn.Module):
    """The mean of the neighbours beside the node itself."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.own = nn.Linear(c_in, c_out)
        self.neighbours = nn.Linear(c_in, c_out, bias=False)

    def forward(self, x, edges):
        source, target = edges
        total = torch.zeros_like(x).index_add_(0, target, x[source])
        count = x.new_zeros(x.shape[0]).index_add_(0, target, x.new_ones(target.shape[0]))
        return self.own(x) + self.neighbours(total / count.clamp(min=1)[:, None])


class GATConv(nn.Module):
    """Attention over the edges of each node, in several heads."""

    def __init__(self, c_in, c_out, heads=4):
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(c_in, c_out, bias=False)
        self.att_source = nn.Parameter(torch.empty(heads, c_out // heads))
        self.att_target = nn.Parameter(torch.empty(heads, c_out // heads))
        nn.init.xavier_uniform_(self.att_source)
        nn.init.xavier_uniform_(self.att_target)

    def forward(self, x, edges):
        source, target = edges
        h = self.lin(x).view(x.shape[0], self.heads, -1)
        score = (h * self.att_source).sum(-1)[source] + (h * self.att_target).sum(-1)[target]
        weight = scatter_softmax(F.leaky_relu(score, 0.2), target, x.shape[0])
        messages = h[source] * weight[:, :, None]
        out = torch.zeros_like(h).scatter_add(0, target[:, None, None].expand_as(messages), messages)
        return out.flatten(1)


def scatter_softmax(score, index, num_nodes):
    """Softmax over the rows of `score` (edges, heads) that share an entry of `index`."""
    rows = index[:, None].expand_as(score)
    shape = (num_nodes, score.shape[1])
    highest = score.new_full(shape, float("-inf")).scatter_reduce(0, rows, score.detach(), "amax")
    e = (score - highest[index]).exp()
    total = score.new_zeros(shape).scatter_reduce(0, rows, e, "sum")
    return e / (total[index] + 1e-16)


class Net(nn.Module):
    def __init__(self, c_in, width, classes, layers=2, conv="sage", dropout=0.3):
        super().__init__()
        make = {"sage": SAGEConv, "gat": GATConv}[conv]
        self.encoder = nn.Linear(c_in, width)
        self.convs = nn.ModuleList(make(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.classifier = nn.Linear(width, classes)
        self.dropout = dropout

    def forward(self, x, edges):
        x = self.encoder(x)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + F.dropout(F.relu(norm(conv(x, edges))), self.dropout, self.training)
        return self.classifier(x)
