import copy, math
import torch, torch.nn as nn, torch.nn.functional as F, timm


class Head(nn.Module):
    def __init__(s, d, out=65536, h=2048, b=256):
        super().__init__()
        s.mlp = nn.Sequential(nn.Linear(d, h), nn.GELU(), nn.Linear(h, h), nn.GELU(), nn.Linear(h, b))
        s.last = nn.utils.parametrizations.weight_norm(nn.Linear(b, out, bias=False))
        s.last.parametrizations.weight.original0.data.fill_(1)
        s.last.parametrizations.weight.original0.requires_grad = False

    def forward(s, x):
        return s.last(F.normalize(s.mlp(x), dim=-1))


class Wrap(nn.Module):
    def __init__(s, bb, head):
        super().__init__()
        s.bb, s.head = bb, head

    def forward(s, xs):
        sizes = torch.tensor([x.shape[-1] for x in xs])
        cut = torch.cumsum(torch.unique_consecutive(sizes, return_counts=True)[1], 0)
        st, out = 0, []
        for e in cut:
            out.append(s.bb(torch.cat(xs[st:e])))
            st = e
        return s.head(torch.cat(out))


class Loss(nn.Module):
    def __init__(s, out, n):
        super().__init__()
        s.n = n
        s.register_buffer("c", torch.zeros(1, out))

    def forward(s, st, te):
        st = (st / 0.1).chunk(s.n)
        t = F.softmax((te - s.c) / 0.04, -1).detach().chunk(2)
        tot, k = 0, 0
        for i, q in enumerate(t):
            for v in range(len(st)):
                if v == i:
                    continue
                tot = tot + torch.sum(-q * F.log_softmax(st[v], -1), -1).mean()
                k += 1
        s.upd(te)
        return tot / k

    @torch.no_grad()
    def upd(s, te):
        s.c = s.c * 0.9 + te.mean(0, keepdim=True) * 0.1


dev = torch.device("cuda")
torch.backends.cudnn.benchmark = True
mk = lambda dp: timm.create_model("vit_small_patch16_224", num_classes=0, dynamic_img_size=True, drop_path_rate=dp)
student, teacher = Wrap(mk(0.1), Head(384)).to(dev), Wrap(mk(0.0), Head(384)).to(dev)
teacher.load_state_dict(student.state_dict())
for p in teacher.parameters():
    p.requires_grad = False
crit = Loss(65536, 2 + 6).to(dev)
reg = [p for n, p in student.named_parameters() if p.requires_grad and p.ndim > 1]
nor = [p for n, p in student.named_parameters() if p.requires_grad and p.ndim <= 1]
opt = torch.optim.AdamW([{"params": reg}, {"params": nor, "weight_decay": 0.0}], lr=5e-4)
scaler = torch.amp.GradScaler("cuda")
B = 32
for it in range(6):
    crops = [torch.randn(B, 3, 224, 224).to(dev, non_blocking=True) for _ in range(2)] + [
        torch.randn(B, 3, 96, 96).to(dev, non_blocking=True) for _ in range(6)
    ]
    with torch.autocast("cuda", dtype=torch.float16):
        t = teacher(crops[:2])
        s = student(crops)
        loss = crit(s, t)
    if not math.isfinite(loss.item()):
        raise SystemExit("nan")
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    for p in student.parameters():
        if p.grad is not None:
            n = p.grad.norm(2)
            c = 3.0 / (n + 1e-6)
            if c < 1:
                p.grad.mul_(c)
    scaler.step(opt)
    scaler.update()
    with torch.no_grad():
        for a, b in zip(student.parameters(), teacher.parameters()):
            b.data.mul_(0.996).add_((1 - 0.996) * a.detach().data)
    print(it, loss.item())
