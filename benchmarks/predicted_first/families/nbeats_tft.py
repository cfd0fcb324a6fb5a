import torch, torch.nn as nn, torch.nn.functional as F, numpy as np


class GRN(nn.Module):
    def __init__(s, d, c=None):
        super().__init__()
        s.a, s.b, s.g, s.n = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 2 * d), nn.LayerNorm(d)
        s.c = nn.Linear(c, d, bias=False) if c else None

    def forward(s, x, c=None):
        h = s.a(x)
        h = h + s.c(c) if c is not None else h
        return s.n(x + F.glu(s.g(F.dropout(s.b(F.elu(h)), 0.1, s.training))))


class VSN(nn.Module):
    def __init__(s, n, d):
        super().__init__()
        s.p = nn.ModuleList(nn.Linear(1, d) for _ in range(n))
        s.g = nn.ModuleList(GRN(d) for _ in range(n))
        s.w = nn.Linear(n * d, n)

    def forward(s, x):
        e = [p(x[..., i : i + 1]) for i, p in enumerate(s.p)]
        w = s.w(torch.cat(e, -1)).softmax(-1)
        return (torch.stack([g(v) for g, v in zip(s.g, e)], -1) * w.unsqueeze(-2)).sum(-1)


class TFT(nn.Module):
    def __init__(s, np_=16, nf=6, d=160, q=7):
        super().__init__()
        s.vp, s.vf = VSN(np_, d), VSN(nf, d)
        s.enc, s.dec = nn.LSTM(d, d, batch_first=True), nn.LSTM(d, d, batch_first=True)
        s.gl = GRN(d)
        s.at = nn.MultiheadAttention(d, 4, batch_first=True, dropout=0.1)
        s.ff = GRN(d)
        s.o = nn.Linear(d, q)

    def forward(s, p, f):
        e, st = s.enc(s.vp(p))
        d, _ = s.dec(s.vf(f), st)
        h = s.gl(torch.cat([e, d], 1))
        T = h.shape[1]
        m = torch.triu(torch.ones(T, T, dtype=torch.bool, device=h.device), 1)
        a, w = s.at(h, h, h, attn_mask=m)
        return s.o(s.ff(h + a)[:, -f.shape[1] :])


dev = torch.device("cuda")
m = TFT().to(dev)
opt = torch.optim.Adam(m.parameters(), 1e-3)
q = torch.tensor([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98], device=dev)
sch = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
data = np.random.default_rng(0).standard_normal((20000, 16)).astype("float32")
for ep in range(3):
    m.train()
    for it in range(4):
        s = np.random.randint(0, 20000 - 192, 256)
        w = torch.from_numpy(np.stack([data[i : i + 192] for i in s])).to(dev)
        y = w[:, 168:, 0]
        e = y[..., None] - m(w[:, :168], w[:, 168:, :6])
        l = torch.maximum(q * e, (q - 1) * e).mean()
        opt.zero_grad()
        l.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.1)
        opt.step()
    m.eval()
    with torch.no_grad():
        v = torch.from_numpy(np.stack([data[i : i + 192] for i in range(1024)])).to(dev)
        e = v[:, 168:, :1] - m(v[:, :168], v[:, 168:, :6])
        vl = torch.maximum(q * e, (q - 1) * e).mean()
    sch.step(vl)
    print(ep, l.item(), vl.item())
