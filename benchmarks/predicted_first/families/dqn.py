import random, collections, torch, torch.nn as nn, torch.nn.functional as F


class Q(nn.Module):
    def __init__(s, a=18):
        super().__init__()
        s.c = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3),
            nn.ReLU(),
            nn.Flatten(),
        )
        s.v = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
        s.a = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, a))

    def forward(s, x):
        h = s.c(x.float() / 255)
        a = s.a(h)
        return s.v(h) + a - a.mean(1, keepdim=True)


dev = "cuda"
q, t = Q().to(dev), Q().to(dev)
t.load_state_dict(q.state_dict())
opt = torch.optim.RMSprop(q.parameters(), 2.5e-4, alpha=0.95, eps=0.01, centered=True)
N = 50000
S = torch.zeros(N, 4, 84, 84, dtype=torch.uint8, device=dev)
A = torch.zeros(N, dtype=torch.long, device=dev)
R = torch.zeros(N, device=dev)
D = torch.zeros(N, dtype=torch.bool, device=dev)
pri = torch.zeros(N, device=dev)
n = 0
obs = torch.randint(0, 255, (4, 84, 84), dtype=torch.uint8, device=dev)
for step in range(400):
    with torch.no_grad():
        a = random.randrange(18) if random.random() < 0.5 else q(obs[None]).argmax(1).item()
    S[n % N] = obs
    A[n % N] = a
    R[n % N] = random.random()
    D[n % N] = random.random() < 0.01
    pri[n % N] = pri.max().clamp(min=1.0)
    n += 1
    obs = torch.randint(0, 255, (4, 84, 84), dtype=torch.uint8, device=dev)
    if n < 64 or step % 4:
        continue
    p = pri[:n] ** 0.6
    i = torch.multinomial(p, 512, replacement=True)
    w = (n * p[i] / p.sum()) ** -0.4
    with torch.no_grad():
        b = q(S[(i + 1) % n]).argmax(1)
        y = R[i] + 0.99 * ~D[i] * t(S[(i + 1) % n]).gather(1, b[:, None]).squeeze(1)
    td = q(S[i]).gather(1, A[i, None]).squeeze(1) - y
    l = (w * F.huber_loss(td, torch.zeros_like(td), reduction="none")).mean()
    opt.zero_grad()
    l.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10.0)
    opt.step()
    pri[i] = td.detach().abs() + 1e-6
    if step % 100 == 0:
        t.load_state_dict(q.state_dict())
        print(step, l.item())
