import torch, torch.nn as nn, torch.nn.functional as F
from torch_geometric.nn import GATv2Conv, global_mean_pool
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

torch.manual_seed(0)


def g():
    n = int(torch.randint(20, 60, (1,)))
    e = n * 8
    return Data(
        x=torch.randn(n, 64), edge_index=torch.randint(0, n, (2, e)), edge_attr=torch.randn(e, 16), y=torch.randn(1)
    )


dl = DataLoader([g() for _ in range(1024)], batch_size=256, shuffle=True)


class Net(nn.Module):
    def __init__(s, h=64, heads=8):
        super().__init__()
        s.c1 = GATv2Conv(64, h, heads, edge_dim=16)
        s.c2 = GATv2Conv(h * heads, h, heads, edge_dim=16)
        s.o = nn.Linear(h * heads, 1)

    def forward(s, d):
        ei, ea = d.edge_index, d.edge_attr
        if s.training:
            keep = torch.rand(ei.shape[1], device=ei.device) > 0.3
            ei, ea = ei[:, keep], ea[keep]
        x = F.elu(s.c1(d.x, ei, ea))
        x = F.elu(s.c2(x, ei, ea))
        return s.o(global_mean_pool(x, d.batch)).squeeze(-1)


m = Net().cuda()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for ep in range(3):
    for d in dl:
        d = d.to("cuda")
        l = F.smooth_l1_loss(m(d), d.y)
        opt.zero_grad()
        l.backward()
        opt.step()
    print(ep, l.item())
