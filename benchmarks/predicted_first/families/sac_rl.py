import argparse, copy, random
import torch, torch.nn as nn, torch.nn.functional as F
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(s, o, a, h=1024):
        super().__init__()
        s.net = nn.Sequential(nn.Linear(o, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        s.mu, s.ls = nn.Linear(h, a), nn.Linear(h, a)

    def forward(s, x):
        h = s.net(x)
        mu = s.mu(h)
        std = s.ls(h).clamp(-5, 2).exp()
        d = Normal(mu, std)
        u = d.rsample()
        a = torch.tanh(u)
        lp = (d.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1)
        return a, lp


class Critic(nn.Module):
    def __init__(s, o, a, h=1024):
        super().__init__()
        mk = lambda: nn.Sequential(nn.Linear(o + a, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))
        s.q1, s.q2 = mk(), mk()

    def forward(s, o, a):
        x = torch.cat([o, a], -1)
        return s.q1(x).squeeze(-1), s.q2(x).squeeze(-1)


class Replay:
    def __init__(s, n, o, a, dev):
        s.n, s.i, s.full = n, 0, False
        s.o = torch.zeros(n, o, device=dev)
        s.o2 = torch.zeros(n, o, device=dev)
        s.a = torch.zeros(n, a, device=dev)
        s.r = torch.zeros(n, device=dev)
        s.d = torch.zeros(n, device=dev)

    def add(s, o, a, r, o2, d):
        k = o.shape[0]
        idx = (torch.arange(k, device=o.device) + s.i) % s.n
        s.o[idx], s.a[idx], s.r[idx], s.o2[idx], s.d[idx] = o, a, r, o2, d
        s.i = (s.i + k) % s.n
        s.full = s.full or s.i == 0

    def sample(s, b):
        hi = s.n if s.full else s.i
        j = torch.randint(0, hi, (b,), device=s.o.device)
        return s.o[j], s.a[j], s.r[j], s.o2[j], s.d[j]


p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=16384)
p.add_argument("--updates", type=int, default=4)
args = p.parse_args()
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
O, A, N = 348, 17, 4096
torch.manual_seed(0)
actor, critic = Actor(O, A).to(dev), Critic(O, A).to(dev)
target = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True, device=dev)
oa, oc, oal = (torch.optim.Adam(x, 3e-4) for x in (actor.parameters(), critic.parameters(), [log_alpha]))
buf = Replay(1_000_000, O, A, dev)
obs = torch.randn(N, O, device=dev)
for it in range(12):
    with torch.no_grad():
        act, _ = actor(obs)
    nxt = obs + 0.1 * torch.randn_like(obs)
    rew = -act.pow(2).sum(-1)
    done = (torch.rand(N, device=dev) < 0.01).float()
    buf.add(obs, act, rew, nxt, done)
    obs = torch.where(done[:, None].bool(), torch.randn_like(obs), nxt)
    if it < 1:
        continue
    for _ in range(args.updates):
        o, a, r, o2, d = buf.sample(args.batch)
        with torch.no_grad():
            a2, lp2 = actor(o2)
            q1, q2 = target(o2, a2)
            y = r + 0.99 * (1 - d) * (torch.min(q1, q2) - log_alpha.exp() * lp2)
        q1, q2 = critic(o, a)
        lc = F.mse_loss(q1, y) + F.mse_loss(q2, y)
        oc.zero_grad()
        lc.backward()
        oc.step()
        for q in critic.parameters():
            q.requires_grad_(False)
        a_, lp = actor(o)
        q1, q2 = critic(o, a_)
        la = (log_alpha.exp().detach() * lp - torch.min(q1, q2)).mean()
        oa.zero_grad()
        la.backward()
        oa.step()
        for q in critic.parameters():
            q.requires_grad_(True)
        ll = -(log_alpha * (lp.detach() - A)).mean()
        oal.zero_grad()
        ll.backward()
        oal.step()
        with torch.no_grad():
            for t, s in zip(target.parameters(), critic.parameters()):
                t.lerp_(s, 0.005)
    print(it, lc.item(), la.item(), torch.cuda.max_memory_allocated() / 2**20)
