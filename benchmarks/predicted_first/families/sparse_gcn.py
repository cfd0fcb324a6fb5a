"""Graph convolutions by torch.sparse over a whole graph, neighbourhood pools by index_reduce, link scores, Rprop."""

import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 150_000, 3_000_000, 128, 256, 47


def normalized(src, dst, n):
    loops = torch.arange(n, device=src.device)
    row, col = torch.cat([src, dst, loops]), torch.cat([dst, src, loops])
    deg = torch.bincount(row, minlength=n).float()
    inv = deg.pow(-0.5)
    inv[inv == float("inf")] = 0
    adj = torch.sparse_coo_tensor(torch.stack([row, col]), inv[row] * inv[col], (n, n))
    return adj.coalesce()


class Conv(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(a, b))
        self.bias = nn.Parameter(torch.zeros(b))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias


class Pool(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.near, self.own = nn.Linear(a, b), nn.Linear(2 * b, b)

    def forward(self, x, src, dst):
        h = F.relu(self.near(x))
        best = torch.zeros_like(h).index_reduce_(0, dst, h[src], "amax", include_self=True)
        return F.normalize(self.own(torch.cat([h, best], 1)), dim=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Conv(FEATURES, HIDDEN), Conv(HIDDEN, HIDDEN)
        self.norms = nn.ModuleList(nn.BatchNorm1d(HIDDEN) for _ in range(2))
        self.pool = Pool(HIDDEN, HIDDEN)
        self.out = Conv(HIDDEN, CLASSES)

    def forward(self, x, adj, src, dst):
        x = F.dropout(F.relu(self.norms[0](self.a(x, adj))), 0.5, self.training)
        x = F.dropout(F.relu(self.norms[1](self.b(x, adj))), 0.5, self.training)
        h = self.pool(x, src, dst)
        return h, self.out(h, adj)


torch.manual_seed(0)
device = "cuda"
src, dst = torch.randint(0, NODES, (2, EDGES)).to(device)
x = torch.randn(NODES, FEATURES).to(device)
y = torch.randint(0, CLASSES, (NODES,)).to(device)
train = (torch.rand(NODES) < 0.6).to(device)
adj = normalized(src, dst, NODES)
few_src, few_dst = src[:600_000], dst[:600_000]
model = Net().to(device)
optimizer = torch.optim.Rprop(model.parameters(), lr=0.01)
for epoch in range(4):
    model.train()
    optimizer.zero_grad()
    h, out = model(x, adj, few_src, few_dst)
    loss = F.nll_loss(F.log_softmax(out, 1)[train], y[train])
    wrong = torch.randint(0, NODES, (2, 600_000), device=device)
    good = (h[few_src] * h[few_dst]).sum(-1)
    bad = (h[wrong[0]] * h[wrong[1]]).sum(-1)
    loss = loss - F.logsigmoid(good).mean() - F.logsigmoid(-bad).mean()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        pred = model(x, adj, few_src, few_dst)[1].argmax(1)
        acc = (pred[~train] == y[~train]).float().mean()
        confusion = torch.bincount(y * CLASSES + pred, minlength=CLASSES**2).view(CLASSES, CLASSES)
    print(f"Epoch {epoch} loss {loss.item():.4f} acc {acc.item():.4f} {confusion.trace().item()}", flush=True)
