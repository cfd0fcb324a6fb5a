import torch, torch.nn.functional as F
from torch_geometric.nn import SAGEConv, GCNConv, BatchNorm
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected, add_self_loops, dropout_edge

N, E, Fd, C = 60_000, 600_000, 256, 47
torch.manual_seed(1)
ei = to_undirected(torch.randint(0, N, (2, E)))
data = Data(x=torch.randn(N, Fd), edge_index=ei, y=torch.randint(0, C, (N,)))
data.train_mask = torch.rand(N) < 0.6
data.val_mask = ~data.train_mask


class Net(torch.nn.Module):
    def __init__(s, h=512, L=3):
        super().__init__()
        d = [Fd] + [h] * (L - 1) + [C]
        s.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(d[:-1], d[1:]))
        s.bns = torch.nn.ModuleList(BatchNorm(h) for _ in range(L - 1))
        s.skip = GCNConv(Fd, h)

    def forward(s, x, ei):
        sk = s.skip(x, ei)
        for i, c in enumerate(s.convs[:-1]):
            x = F.dropout(F.relu(s.bns[i](c(x, ei))), 0.5, s.training) + sk
        return s.convs[-1](x, ei)


dev = "cuda"
data = data.to(dev)
model = Net().to(dev)
opt = torch.optim.Adam(model.parameters(), 0.01, weight_decay=5e-4)


def train():
    model.train()
    opt.zero_grad()
    ei, _ = dropout_edge(data.edge_index, p=0.2)
    out = model(data.x, ei)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    opt.step()
    return float(loss)


@torch.no_grad()
def test():
    model.eval()
    pred = model(data.x, data.edge_index).argmax(-1)
    return [int((pred[m] == data.y[m]).sum()) / int(m.sum()) for m in (data.train_mask, data.val_mask)]


best = 0
for e in range(8):
    l = train()
    tr, va = test()
    if va > best:
        best = va
        torch.save(model.state_dict(), "best.pt")
    print(e, l, tr, va)
