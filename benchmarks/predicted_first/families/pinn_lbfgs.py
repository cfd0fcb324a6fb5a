import torch, torch.nn as nn

torch.set_default_dtype(torch.float32)
dev = torch.device("cuda:0")
torch.set_default_device(dev)


class Net(nn.Module):
    def __init__(s, h=256, n=6):
        super().__init__()
        L = [nn.Linear(3, h), nn.Tanh()]
        for _ in range(n):
            L += [nn.Linear(h, h), nn.Tanh()]
        s.n = nn.Sequential(*L, nn.Linear(h, 3))

    def forward(s, x):
        return s.n(x)


net = Net()
xyz = torch.rand(100_000, 3, requires_grad=True)
bc = torch.rand(20_000, 3)
d = lambda f, x: torch.autograd.grad(f, x, torch.ones_like(f), create_graph=True)[0]


def resid(x):
    o = net(x)
    u, v, p = o[:, 0], o[:, 1], o[:, 2]
    du, dv, dp = d(u, x), d(v, x), d(p, x)
    uxx, uyy = d(du[:, 0], x)[:, 0], d(du[:, 1], x)[:, 1]
    vxx, vyy = d(dv[:, 0], x)[:, 0], d(dv[:, 1], x)[:, 1]
    f = du[:, 2] + u * du[:, 0] + v * du[:, 1] + dp[:, 0] - 0.01 * (uxx + uyy)
    g = dv[:, 2] + u * dv[:, 0] + v * dv[:, 1] + dp[:, 1] - 0.01 * (vxx + vyy)
    return (f**2).mean() + (g**2).mean() + ((du[:, 0] + dv[:, 1]) ** 2).mean()


ad = torch.optim.Adam(net.parameters(), 1e-3)
for i in range(6):
    ad.zero_grad()
    l = resid(xyz) + net(bc)[:, :2].pow(2).mean()
    l.backward()
    ad.step()
    print("adam", i, l.item()) if i % 2 == 0 else None
lb = torch.optim.LBFGS(net.parameters(), max_iter=20, history_size=50, line_search_fn="strong_wolfe")


def closure():
    lb.zero_grad()
    l = resid(xyz) + net(bc)[:, :2].pow(2).mean()
    l.backward()
    return l


for i in range(3):
    l = lb.step(closure)
    print("lbfgs", i, float(l))
