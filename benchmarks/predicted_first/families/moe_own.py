import torch, torch.nn as nn, torch.nn.functional as F


class Expert(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.a, s.b, s.c = nn.Linear(d, h, bias=False), nn.Linear(d, h, bias=False), nn.Linear(h, d, bias=False)

    def forward(s, x):
        return s.c(F.silu(s.a(x)) * s.b(x))


class MoE(nn.Module):
    def __init__(s, d=1024, h=2816, n=8, k=2):
        super().__init__()
        s.k, s.n = k, n
        s.gate = nn.Linear(d, n, bias=False)
        s.ex = nn.ModuleList(Expert(d, h) for _ in range(n))

    def forward(s, x):
        B, T, C = x.shape
        x = x.view(-1, C)
        p = F.softmax(s.gate(x), -1, dtype=torch.float)
        w, i = torch.topk(p, s.k, -1)
        w = (w / w.sum(-1, keepdim=True)).to(x.dtype)
        out = torch.zeros_like(x)
        for e, ex in enumerate(s.ex):
            t, kk = torch.where(i == e)
            if t.numel() == 0:
                continue
            out.index_add_(0, t, ex(x[t]) * w[t, kk, None])
        load = F.one_hot(i[:, 0], s.n).float().mean(0)
        s.aux = s.n * (load * p.mean(0)).sum()
        return out.view(B, T, C)


class Block(nn.Module):
    def __init__(s, d=1024, nh=16):
        super().__init__()
        s.n1, s.n2 = nn.RMSNorm(d), nn.RMSNorm(d)
        s.qkv, s.o = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        s.moe = MoE(d)
        s.nh = nh

    def forward(s, x):
        B, T, C = x.shape
        q, k, v = s.qkv(s.n1(x)).view(B, T, 3, s.nh, C // s.nh).permute(2, 0, 3, 1, 4)
        x = x + s.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C))
        return x + s.moe(s.n2(x))


class LM(nn.Module):
    def __init__(s, V=32000, d=1024, L=6):
        super().__init__()
        s.e = nn.Embedding(V, d)
        s.b = nn.ModuleList(Block(d) for _ in range(L))
        s.n = nn.RMSNorm(d)
        s.h = nn.Linear(d, V, bias=False)
        s.h.weight = s.e.weight

    def forward(s, x, y):
        x = s.e(x)
        for b in s.b:
            x = b(x)
        return F.cross_entropy(s.h(s.n(x)).flatten(0, 1), y.flatten()) + 0.01 * sum(b.moe.aux for b in s.b)


m = LM().cuda()
opt = torch.optim.AdamW(m.parameters(), 3e-4, betas=(0.9, 0.95), weight_decay=0.1)
for i in range(4):
    x = torch.randint(0, 32000, (8, 1025), device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        loss = m(x[:, :-1], x[:, 1:])
    loss.backward()
    n = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)
    print(i, loss.item(), n.item())
