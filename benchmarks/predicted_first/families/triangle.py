import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential


class TriMul(nn.Module):
    def __init__(s, d, h, out):
        super().__init__()
        s.ln, s.lo = nn.LayerNorm(d), nn.LayerNorm(h)
        s.p, s.g, s.o, s.og = nn.Linear(d, 2 * h), nn.Linear(d, 2 * h), nn.Linear(h, d), nn.Linear(d, d)
        s.out = out

    def forward(s, z):
        x = s.ln(z)
        a, b = (s.p(x) * s.g(x).sigmoid()).chunk(2, -1)
        y = torch.einsum("bikc,bjkc->bijc" if s.out else "bkic,bkjc->bijc", a, b)
        return s.o(s.lo(y)) * s.og(x).sigmoid()


class TriAtt(nn.Module):
    def __init__(s, d, nh=4, dh=32, end=False):
        super().__init__()
        s.ln = nn.LayerNorm(d)
        s.q, s.k, s.v = (nn.Linear(d, nh * dh, bias=False) for _ in range(3))
        s.b, s.g, s.o = nn.Linear(d, nh, bias=False), nn.Linear(d, nh * dh), nn.Linear(nh * dh, d)
        s.nh, s.end = nh, end

    def forward(s, z):
        if s.end:
            z = z.transpose(1, 2)
        x = s.ln(z)
        sp = lambda t: t.unflatten(-1, (s.nh, -1)).transpose(-2, -3)
        q, k, v = sp(s.q(x)), sp(s.k(x)), sp(s.v(x))
        bias = s.b(x).permute(0, 3, 1, 2).unsqueeze(1)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(-1, q.shape[1], -1, -1, -1).to(q.dtype))
        y = s.o(a.transpose(-2, -3).flatten(-2) * s.g(x).sigmoid())
        return y.transpose(1, 2) if s.end else y


class Block(nn.Module):
    def __init__(s, d=128):
        super().__init__()
        s.m = nn.ModuleList([TriMul(d, 128, True), TriMul(d, 128, False), TriAtt(d), TriAtt(d, end=True)])
        s.t = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))

    def forward(s, z):
        for m in s.m:
            z = z + F.dropout(m(z), 0.25, s.training)
        return z + s.t(z)


net = nn.Sequential(*[Block() for _ in range(8)]).cuda()
head = nn.Linear(128, 64).cuda()
ps = [*net.parameters(), *head.parameters()]
opt = torch.optim.Adam(ps, 1e-3)
N = 256
for i in range(3):
    z = torch.randn(1, N, N, 128, device="cuda", requires_grad=True)
    y = torch.randint(0, 64, (1, N, N), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        h = checkpoint_sequential(net, 4, z, use_reentrant=False)
        lo = head((h + h.transpose(1, 2)) / 2)
    loss = F.cross_entropy(lo.float().permute(0, 3, 1, 2), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(ps, 0.1)
    opt.step()
    print(i, loss.item())
