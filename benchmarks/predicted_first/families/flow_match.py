import math, copy, torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def temb(t, d):
    f = torch.exp(-math.log(1e4) * torch.arange(d // 2, device=t.device) / (d // 2))
    a = t[:, None] * f
    return torch.cat([a.sin(), a.cos()], -1)


class RB(nn.Module):
    def __init__(s, i, o, e):
        super().__init__()
        s.n1, s.n2 = nn.GroupNorm(32, i), nn.GroupNorm(32, o)
        s.c1, s.c2 = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
        s.e = nn.Linear(e, 2 * o)
        s.sk = nn.Conv2d(i, o, 1) if i != o else nn.Identity()
        s.do = nn.Dropout(0.1)

    def forward(s, x, t):
        h = s.c1(F.silu(s.n1(x)))
        a, b = s.e(F.silu(t))[..., None, None].chunk(2, 1)
        h = s.n2(h) * (1 + a) + b
        return s.sk(x) + s.c2(s.do(F.silu(h)))


class At(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.n = nn.GroupNorm(32, c)
        s.qkv, s.o = nn.Conv2d(c, 3 * c, 1), nn.Conv2d(c, c, 1)

    def forward(s, x):
        b, c, h, w = x.shape
        q, k, v = s.qkv(s.n(x)).view(b, 3, c // 64, 64, h * w).transpose(-1, -2).unbind(1)
        return x + s.o(F.scaled_dot_product_attention(q, k, v).transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(s, ch=128, mult=(1, 2, 2, 4), nb=2):
        super().__init__()
        e = ch * 4
        s.ch = ch
        s.t = nn.Sequential(nn.Linear(ch, e), nn.SiLU(), nn.Linear(e, e))
        s.y = nn.Embedding(11, e)
        s.i = nn.Conv2d(3, ch, 3, padding=1)
        s.d, s.u = nn.ModuleList(), nn.ModuleList()
        cs, c = [ch], ch
        for l, m in enumerate(mult):
            for _ in range(nb):
                s.d.append(nn.ModuleList([RB(c, ch * m, e), At(ch * m) if l >= 2 else nn.Identity()]))
                c = ch * m
                cs.append(c)
            if l < len(mult) - 1:
                s.d.append(nn.Conv2d(c, c, 3, 2, 1))
                cs.append(c)
        s.m = nn.ModuleList([RB(c, c, e), At(c), RB(c, c, e)])
        for l, m in reversed(list(enumerate(mult))):
            for _ in range(nb + 1):
                s.u.append(nn.ModuleList([RB(c + cs.pop(), ch * m, e), At(ch * m) if l >= 2 else nn.Identity()]))
                c = ch * m
            if l:
                s.u.append(nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(c, c, 3, padding=1)))
        s.o = nn.Sequential(nn.GroupNorm(32, c), nn.SiLU(), nn.Conv2d(c, 3, 3, padding=1))

    def forward(s, x, t, y):
        t = s.t(temb(t, s.ch)) + s.y(y)
        x = s.i(x)
        hs = [x]
        for b in s.d:
            x = b[1](b[0](x, t)) if isinstance(b, nn.ModuleList) else b(x)
            hs.append(x)
        x = s.m[2](s.m[1](s.m[0](x, t)), t)
        for b in s.u:
            x = b[1](b[0](torch.cat([x, hs.pop()], 1), t)) if isinstance(b, nn.ModuleList) else b(x)
        return s.o(x)


dev = torch.device("cuda")
m = UNet().to(dev)
ema = copy.deepcopy(m).requires_grad_(False)
opt = torch.optim.AdamW(m.parameters(), 2e-4)
for i in range(4):
    x1 = torch.randn(64, 3, 64, 64, device=dev)
    y = torch.randint(0, 10, (64,), device=dev)
    y = torch.where(torch.rand(64, device=dev) < 0.1, 10, y)
    t = torch.rand(64, device=dev)
    x0 = torch.randn_like(x1)
    xt = (1 - t)[:, None, None, None] * x0 + t[:, None, None, None] * x1
    with torch.autocast("cuda", torch.bfloat16):
        l = F.mse_loss(m(xt, t, y).float(), x1 - x0)
    l.backward()
    nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    with torch.no_grad():
        [a.lerp_(b, 1e-4) for a, b in zip(ema.parameters(), m.parameters())]
    print(i, l.item())
ema.eval()
with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
    x = torch.randn(64, 3, 64, 64, device=dev)
    y = torch.arange(64, device=dev) % 10
    for k in range(8):
        t = torch.full((128,), k / 8, device=dev)
        v = ema(x.repeat(2, 1, 1, 1), t, torch.cat([y, torch.full_like(y, 10)]))
        c, u = v.float().chunk(2)
        x = x + (u + 3 * (c - u)) / 8
print(x.std().item(), torch.cuda.max_memory_allocated() >> 20)
