import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class PScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, X):
        L = X.shape[1]
        A, X = A.clone(), X.clone()
        st = 1
        while st < L:
            X[:, st:] = X[:, st:] + A[:, st:] * X[:, :-st]
            A[:, st:] = A[:, st:] * A[:, :-st]
            st *= 2
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx, g):
        A, X = ctx.saved_tensors
        G = g.flip(1).clone()
        Ar = torch.cat([torch.ones_like(A[:, :1]), A.flip(1)[:, :-1]], 1)
        st = 1
        while st < G.shape[1]:
            G[:, st:] = G[:, st:] + Ar[:, st:] * G[:, :-st]
            Ar[:, st:] = Ar[:, st:] * Ar[:, :-st]
            st *= 2
        G = G.flip(1)
        return G * F.pad(X[:, :-1], (0, 0, 0, 0, 1, 0)), G


class Mamba(nn.Module):
    def __init__(s, d=512, n=16, ex=2, k=4):
        super().__init__()
        s.di, s.n, s.r = d * ex, n, d // 16
        s.inp = nn.Linear(d, 2 * s.di, bias=False)
        s.conv = nn.Conv1d(s.di, s.di, k, groups=s.di, padding=k - 1)
        s.xp = nn.Linear(s.di, s.r + 2 * n, bias=False)
        s.dt = nn.Linear(s.r, s.di)
        s.A = nn.Parameter(torch.log(torch.arange(1, n + 1).float().repeat(s.di, 1)))
        s.D = nn.Parameter(torch.ones(s.di))
        s.out = nn.Linear(s.di, d, bias=False)

    def forward(s, x):
        L = x.shape[1]
        x, z = s.inp(x).chunk(2, -1)
        x = F.silu(s.conv(x.transpose(1, 2))[..., :L].transpose(1, 2))
        dt, B, C = s.xp(x).split([s.r, s.n, s.n], -1)
        dt = F.softplus(s.dt(dt))
        dA = torch.exp(dt[..., None] * -torch.exp(s.A))
        dBx = dt[..., None] * B[:, :, None] * x[..., None]
        h = PScan.apply(dA, dBx)
        y = (h @ C[..., None]).squeeze(-1) + s.D * x
        return s.out(y * F.silu(z))


class Net(nn.Module):
    def __init__(s, L=6, d=512, V=256):
        super().__init__()
        s.e = nn.Embedding(V, d)
        s.b = nn.ModuleList(Mamba(d) for _ in range(L))
        s.n = nn.ModuleList(nn.LayerNorm(d) for _ in range(L))
        s.h = nn.Linear(d, V)

    def forward(s, x):
        x = s.e(x)
        for b, n in zip(s.b, s.n):
            x = x + checkpoint(lambda v, b=b, n=n: b(n(v)), x, use_reentrant=False)
        return s.h(x)


net = Net().cuda()
opt = torch.optim.NAdam(net.parameters(), 3e-4)
for i in range(3):
    x = torch.randint(0, 256, (8, 1024), device="cuda")
    l = F.cross_entropy(net(x[:, :-1]).transpose(1, 2), x[:, 1:])
    opt.zero_grad()
    l.backward()
    opt.step()
    print(i, l.item())
