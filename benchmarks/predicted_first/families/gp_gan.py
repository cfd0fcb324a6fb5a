import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.utils import spectral_norm
from torch.utils.checkpoint import checkpoint


# hifi-gan like mel -> wave with multi-period, multi-scale discriminators, STFT loss
class ResB(nn.Module):
    def __init__(s, c, k, d):
        super().__init__()
        s.c = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(c, c, k, dilation=x, padding=(k - 1) * x // 2)) for x in d
        )

    def forward(s, x):
        for c in s.c:
            x = x + c(F.leaky_relu(x, 0.1))
        return x


class G(nn.Module):
    def __init__(s, c=256):
        super().__init__()
        s.pre = nn.Conv1d(80, c, 7, padding=3)
        s.up, s.rb = nn.ModuleList(), nn.ModuleList()
        for r, k in ((8, 16), (8, 16), (2, 4), (2, 4)):
            s.up.append(nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(c, c // 2, k, r, (k - r) // 2)))
            c //= 2
            s.rb.append(nn.ModuleList(ResB(c, kk, (1, 3, 5)) for kk in (3, 7, 11)))
        s.post = nn.Conv1d(c, 1, 7, padding=3)

    def forward(s, x):
        x = s.pre(x)
        for u, rb in zip(s.up, s.rb):
            x = u(F.leaky_relu(x, 0.1))
            x = sum(b(x) for b in rb) / len(rb)
        return torch.tanh(s.post(F.leaky_relu(x)))


class P(nn.Module):
    def __init__(s, p):
        super().__init__()
        s.p = p
        ch = [1, 32, 128, 512, 1024]
        s.c = nn.ModuleList(spectral_norm(nn.Conv2d(a, b, (5, 1), (3, 1), (2, 0))) for a, b in zip(ch[:-1], ch[1:]))
        s.o = nn.Conv2d(1024, 1, (3, 1), 1, (1, 0))

    def forward(s, x):
        b, c, t = x.shape
        if t % s.p:
            x = F.pad(x, (0, s.p - t % s.p), "reflect")
        x = x.view(b, c, -1, s.p)
        fm = []
        for l in s.c:
            x = F.leaky_relu(l(x), 0.1)
            fm.append(x)
        return s.o(x).flatten(1), fm


def stft(x, n):
    return (
        torch.stft(x.squeeze(1), n, n // 4, n, torch.hann_window(n, device=x.device), return_complex=True)
        .abs()
        .clamp_min(1e-7)
    )


g, ds = G().cuda(), nn.ModuleList(P(p) for p in (2, 3, 5, 7, 11)).cuda()
og, od = torch.optim.AdamW(g.parameters(), 2e-4, (0.8, 0.99)), torch.optim.AdamW(ds.parameters(), 2e-4, (0.8, 0.99))
B, T = 16, 32
for it in range(5):
    mel = torch.randn(B, 80, T, device="cuda")
    wav = torch.randn(B, 1, T * 256, device="cuda").clamp(-1, 1)
    fake = g(mel)
    od.zero_grad(set_to_none=True)
    ld = 0
    for d in ds:
        r, _ = d(wav)
        f, _ = d(fake.detach())
        ld = ld + ((1 - r) ** 2).mean() + (f**2).mean()
    ld.backward()
    od.step()
    og.zero_grad(set_to_none=True)
    lg = 45 * sum(F.l1_loss(stft(fake, n).log(), stft(wav, n).log()) for n in (512, 1024, 2048))
    for d in ds:
        f, ff = d(fake)
        with torch.no_grad():
            _, rf = d(wav)
        lg = lg + ((1 - f) ** 2).mean() + 2 * sum(F.l1_loss(a, b) for a, b in zip(ff, rf))
    lg.backward()
    gn = nn.utils.clip_grad_norm_(g.parameters(), 1000.0)
    og.step()
    print(it, float(ld), float(lg), float(gn))
