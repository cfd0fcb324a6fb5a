import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, vmap, grad, jacrev, hessian, stack_module_state

net = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1),
    nn.GroupNorm(8, 64),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.GroupNorm(8, 64),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(1024, 5),
).cuda()
params = {k: v for k, v in net.named_parameters()}
opt = torch.optim.Adam(net.parameters(), 1e-3)


def loss(p, x, y):
    return F.cross_entropy(functional_call(net, p, (x,)), y)


def task(p, xs, ys, xq, yq):
    for _ in range(3):
        g = grad(loss)(p, xs, ys)
        p = {k: v - 0.01 * g[k] for k, v in p.items()}
    return loss(p, xq, yq)


for i in range(3):
    xs, ys, xq, yq = (
        torch.randn(8, 25, 3, 64, 64, device="cuda"),
        torch.randint(0, 5, (8, 25), device="cuda"),
        torch.randn(8, 75, 3, 64, 64, device="cuda"),
        torch.randint(0, 5, (8, 75), device="cuda"),
    )
    l = vmap(task, in_dims=(None, 0, 0, 0, 0), randomness="different")(params, xs, ys, xq, yq).mean()
    opt.zero_grad()
    l.backward()
    opt.step()
    print(i, l.item())
mods = [nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1)).cuda() for _ in range(16)]
p, b = stack_module_state(mods)
o2 = torch.optim.Adam(p.values(), 1e-3)


def ens(pp, x):
    return functional_call(mods[0], pp, (x,))


for i in range(3):
    x = torch.randn(4096, 64, device="cuda")
    out = vmap(ens, (0, None))(p, x)
    l = (out - x.sum(1, keepdim=True)).pow(2).mean()
    o2.zero_grad()
    l.backward()
    o2.step()
H = vmap(hessian(lambda x: mods[0](x).sum()))(torch.randn(256, 64, device="cuda"))
print(H.shape, torch.cuda.max_memory_allocated() >> 20)
