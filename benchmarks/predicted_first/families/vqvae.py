import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Res(nn.Module):
    def __init__(s, c):
        super().__init__()
        s.b = nn.Sequential(
            nn.ReLU(), nn.Conv2d(c, 32, 3, padding=1, bias=False), nn.ReLU(), nn.Conv2d(32, c, 1, bias=False)
        )

    def forward(s, x):
        return x + s.b(x)


class VQ(nn.Module):
    def __init__(s, n=1024, d=64, decay=0.99):
        super().__init__()
        s.n, s.d, s.decay = n, d, decay
        e = torch.randn(n, d)
        s.register_buffer("e", e)
        s.register_buffer("cs", torch.zeros(n))
        s.register_buffer("avg", e.clone())

    def forward(s, z):
        b, c, h, w = z.shape
        f = z.permute(0, 2, 3, 1).reshape(-1, c)
        d = f.pow(2).sum(1, keepdim=True) - 2 * f @ s.e.t() + s.e.pow(2).sum(1)
        idx = d.argmin(1)
        oh = F.one_hot(idx, s.n).type(f.dtype)
        q = (oh @ s.e).view(b, h, w, c).permute(0, 3, 1, 2)
        if s.training:
            with torch.no_grad():
                s.cs.mul_(s.decay).add_(oh.sum(0), alpha=1 - s.decay)
                s.avg.mul_(s.decay).add_(oh.t() @ f, alpha=1 - s.decay)
                n = s.cs.sum()
                cs = (s.cs + 1e-5) / (n + s.n * 1e-5) * n
                s.e.copy_(s.avg / cs.unsqueeze(1))
                dead = s.cs < 1.0
                if dead.any():
                    rand = f[torch.randperm(f.shape[0], device=f.device)[: s.n]]
                    s.e[dead] = rand[dead[: rand.shape[0]]] if rand.shape[0] == s.n else s.e[dead]
        loss = F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        p = oh.mean(0)
        perp = torch.exp(-(p * (p + 1e-10).log()).sum())
        return q, loss, perp


class Model(nn.Module):
    def __init__(s, c=128, d=64):
        super().__init__()
        s.enc = nn.Sequential(
            nn.Conv2d(3, c // 2, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(c // 2, c, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, 1, 1),
            Res(c),
            Res(c),
            nn.ReLU(),
            nn.Conv2d(c, d, 1),
        )
        s.vq = VQ(d=d)
        s.dec = nn.Sequential(
            nn.Conv2d(d, c, 3, 1, 1),
            Res(c),
            Res(c),
            nn.ReLU(),
            nn.ConvTranspose2d(c, c // 2, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(c // 2, 3, 4, 2, 1),
        )

    def forward(s, x):
        z = s.enc(x)
        q, l, p = s.vq(z)
        return s.dec(q), l, p


device = "cuda"
data = TensorDataset(torch.rand(512, 3, 128, 128))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
model = Model().to(device)
opt = torch.optim.Adam(model.parameters(), lr=2e-4, amsgrad=True)
for epoch in range(2):
    tot = 0.0
    for (x,) in loader:
        x = x.to(device, non_blocking=True)
        rec, l, perp = model(x)
        rl = F.mse_loss(rec, x) / 0.06
        loss = rl + 0.25 * l
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += rl.item()
    print(f"epoch {epoch} rec {tot / len(loader):.4f} perplexity {perp.item():.1f}")
    torch.save({"model": model.state_dict(), "opt": opt.state_dict()}, "vqvae.pt")
model.eval()
with torch.no_grad():
    x = next(iter(loader))[0].to(device)
    rec, _, _ = model(x)
    print(F.l1_loss(rec, x).item())
