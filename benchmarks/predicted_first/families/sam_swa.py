import torch, torch.nn as nn, torch.nn.functional as F, torchvision
from torch.optim.swa_utils import AveragedModel, SWALR, update_bn


class SAM(torch.optim.Optimizer):
    def __init__(s, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        s.base = base(s.param_groups, **kw)
        s.param_groups = s.base.param_groups

    @torch.no_grad()
    def first(s):
        n = torch.norm(torch.stack([p.grad.norm(2) for g in s.param_groups for p in g["params"] if p.grad is not None]))
        for g in s.param_groups:
            for p in g["params"]:
                if p.grad is None:
                    continue
                s.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (g["rho"] / (n + 1e-12)))
        s.zero_grad()

    @torch.no_grad()
    def second(s):
        for g in s.param_groups:
            for p in g["params"]:
                p.data = s.state[p]["old"] if p.grad is not None else p.data
        s.base.step()
        s.zero_grad()

    def step(s, c=None):
        raise NotImplementedError


dev = torch.device("cuda", 0)
m = torchvision.models.convnext_small(num_classes=100).to(dev)
o = SAM(m.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
swa = AveragedModel(m)
sl = SWALR(o.base, 0.05)
mk = lambda: (torch.randn(32, 3, 224, 224, device=dev), torch.randint(0, 100, (32,), device=dev))
for i in range(6):
    x, y = mk()
    F.cross_entropy(m(x), y).backward()
    o.first()
    l = F.cross_entropy(m(x), y)
    l.backward()
    o.second()
    if i >= 2:
        swa.update_parameters(m)
        sl.step()
    print(i, l.item())
update_bn([mk()[0] for _ in range(3)], swa, dev)
swa.eval()
with torch.inference_mode():
    print(swa(mk()[0]).argmax(1).sum().item())
