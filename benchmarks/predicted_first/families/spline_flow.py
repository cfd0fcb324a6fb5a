"""A neural spline flow on tables: rational-quadratic splines by searchsorted and gather, tails by boolean masks, LU layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

DIM, BINS, BOUND, BATCH, LAYERS = 32, 8, 3.0, 32768, 8
MIN = 1e-3
dev = "cuda"


def knots(x, low, high):
    x = F.softmax(x, dim=-1)
    x = MIN + (1 - MIN * BINS) * x
    cum = F.pad(torch.cumsum(x, dim=-1), (1, 0))
    cum = (high - low) * cum + low
    cum[..., 0] = low
    cum[..., -1] = high
    return cum, cum[..., 1:] - cum[..., :-1]


def search(edges, x):
    edges[..., -1] += 1e-6
    return torch.sum(x[..., None] >= edges, dim=-1) - 1


def pick(t, i):
    return t.gather(-1, i)[..., 0]


def spline(x, w, h, d, inverse=False):
    cumw, w = knots(w, -BOUND, BOUND)
    d = MIN + F.softplus(d)
    cumh, h = knots(h, -BOUND, BOUND)
    i = search(cumh if inverse else cumw, x)[..., None]
    x0, wk, y0, hk = pick(cumw, i), pick(w, i), pick(cumh, i), pick(h, i)
    s = h / w
    sk, dk, dk1 = pick(s, i), pick(d, i), pick(d[..., 1:], i)
    if inverse:
        t = (x - y0) * (dk + dk1 - 2 * sk)
        a, b, c = t + hk * (sk - dk), hk * dk - t, -sk * (x - y0)
        root = 2 * c / (-b - torch.sqrt((b.pow(2) - 4 * a * c).clamp(min=0)))
        return root * wk + x0, None
    theta = (x - x0) / wk
    t1 = theta * (1 - theta)
    den = sk + (dk + dk1 - 2 * sk) * t1
    y = y0 + hk * (sk * theta.pow(2) + dk * t1) / den
    num = sk.pow(2) * (dk1 * theta.pow(2) + 2 * sk * t1 + dk * (1 - theta).pow(2))
    return y, torch.log(num) - 2 * torch.log(den)


def unconstrained(x, w, h, d, inverse=False):
    inside = (x >= -BOUND) & (x <= BOUND)
    out, logdet = torch.zeros_like(x), torch.zeros_like(x)
    d = F.pad(d, pad=(1, 1), value=0.5397)
    out[~inside] = x[~inside]
    if torch.any(inside):
        y, det = spline(x[inside], w[inside, :], h[inside, :], d[inside, :], inverse)
        out[inside] = y
        if det is not None:
            logdet[inside] = det
    return out, logdet


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.bn = nn.ModuleList(nn.BatchNorm1d(d, eps=1e-3) for _ in range(2))
        self.fc = nn.ModuleList(nn.Linear(d, d) for _ in range(2))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        t = self.fc[0](F.relu(self.bn[0](x)))
        t = self.fc[1](self.drop(F.relu(self.bn[1](t))))
        return x + t


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        mask = torch.arange(DIM) % 2 == int(flip)
        self.register_buffer("keep", mask.nonzero().squeeze(-1))
        self.register_buffer("move", (~mask).nonzero().squeeze(-1))
        self.net = nn.Sequential(
            nn.Linear(DIM // 2, 256), Residual(256), Residual(256), nn.Linear(256, DIM // 2 * (3 * BINS - 1))
        )

    def forward(self, x, inverse=False):
        a, b = x[:, self.keep], x[:, self.move]
        p = self.net(a).view(len(x), DIM // 2, -1)
        w, h, d = p[..., :BINS], p[..., BINS : 2 * BINS], p[..., 2 * BINS :]
        b, det = unconstrained(b, w / 16, h / 16, d, inverse)
        out = torch.empty_like(x)
        out[:, self.keep] = a
        out[:, self.move] = b
        return out, det.sum(1)


class LU(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Parameter(torch.zeros(DIM, DIM).normal_(0, 1e-3))
        self.up = nn.Parameter(torch.zeros(DIM, DIM).normal_(0, 1e-3))
        self.diag = nn.Parameter(torch.zeros(DIM))
        self.bias = nn.Parameter(torch.zeros(DIM))

    def matrices(self):
        eye = torch.eye(DIM, device=self.low.device)
        diag = F.softplus(self.diag) + 1e-3
        return torch.tril(self.low, -1) + eye, torch.triu(self.up, 1) + torch.diag(diag), diag

    def forward(self, x, inverse=False):
        low, up, diag = self.matrices()
        if inverse:
            y = torch.linalg.solve_triangular(low, (x - self.bias).t(), upper=False, unitriangular=True)
            return torch.linalg.solve_triangular(up, y, upper=True).t(), None
        return F.linear(F.linear(x, up), low, self.bias), diag.log().sum().expand(len(x))


layers = nn.ModuleList()
for k in range(LAYERS):
    layers += [LU(), Coupling(k % 2)]
layers = layers.to(dev)
table = torch.randn(BATCH * 4, DIM).to(dev)
optimizer = torch.optim.NAdam(layers.parameters(), lr=5e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
layers.train()
for step in range(4):
    rows = torch.randperm(len(table), device=dev)[:BATCH]
    z, total = table[rows], 0.0
    for layer in layers:
        z, det = layer(z)
        total = total + det
    log_p = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1) + total
    loss = -log_p.mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(layers.parameters(), 5.0)
    optimizer.step()
    schedule.step()
    print(step, loss.item(), flush=True)
layers.eval()
with torch.no_grad():
    x = torch.randn(BATCH, DIM, device=dev)
    for layer in reversed(layers):
        x, _ = layer(x, inverse=True)
    print(x.median().item(), torch.kthvalue(x[:, 0], 100).values.item())
