import torch, torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class D(Dataset):
    def __init__(s, n, t):
        s.n, s.t = n, t

    def __len__(s):
        return s.n

    def __getitem__(s, i):
        g = torch.Generator().manual_seed(i)
        return (
            torch.randn(13, generator=g),
            [torch.randint(0, r, (int(torch.randint(1, 6, (1,), generator=g)),), generator=g) for r in s.t],
            torch.rand(1, generator=g).round(),
        )


def collate(b):
    dn = torch.stack([x[0] for x in b])
    y = torch.stack([x[2] for x in b])
    v, o = [], []
    for f in range(len(b[0][1])):
        l = [len(x[1][f]) for x in b]
        v.append(torch.cat([x[1][f] for x in b]))
        o.append(torch.tensor([0] + l[:-1]).cumsum(0))
    return dn, v, o, y


TABLES = [1_000_000, 500_000, 2_000_000, 10_000, 300_000, 50, 3_000_000, 1000]


class DLRM(nn.Module):
    def __init__(s, d=64):
        super().__init__()
        s.emb = nn.ModuleList(nn.EmbeddingBag(n, d, mode="sum", sparse=True) for n in TABLES)
        s.bot = nn.Sequential(
            nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, d), nn.ReLU()
        )
        k = len(TABLES) + 1
        s.top = nn.Sequential(
            nn.Linear(d + k * (k - 1) // 2, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1)
        )
        i, j = torch.tril_indices(k, k, -1)
        s.register_buffer("i", i)
        s.register_buffer("j", j)

    def forward(s, dn, v, o):
        x = s.bot(dn)
        T = torch.stack([x] + [e(a, b) for e, a, b in zip(s.emb, v, o)], 1)
        Z = torch.bmm(T, T.transpose(1, 2))
        return s.top(torch.cat([x, Z[:, s.i, s.j]], 1))


model = DLRM().cuda()
dl = DataLoader(D(16384, TABLES), 2048, shuffle=True, collate_fn=collate, num_workers=2)
so = torch.optim.SparseAdam([p for e in model.emb for p in e.parameters()], lr=1e-3)
do = torch.optim.Adagrad(list(model.bot.parameters()) + list(model.top.parameters()), lr=0.01)
lf = nn.BCEWithLogitsLoss()
sched = torch.optim.lr_scheduler.OneCycleLR(do, 0.01, total_steps=100, cycle_momentum=False)
for step, (dn, v, o, y) in enumerate(dl):
    out = model(dn.cuda(), [t.cuda() for t in v], [t.cuda() for t in o])
    loss = lf(out, y.cuda())
    so.zero_grad()
    do.zero_grad()
    loss.backward()
    so.step()
    do.step()
    sched.step()
    print(step, loss.item())
