import torch, torch.nn as nn, torch.nn.functional as F, torchvision, copy
from torchvision.transforms import v2

aug = v2.Compose(
    [
        v2.RandomResizedCrop(128, scale=(0.2, 1.0)),
        v2.RandomHorizontalFlip(),
        v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
        v2.RandomGrayscale(0.2),
        v2.GaussianBlur(9),
        v2.Normalize([0.5] * 3, [0.25] * 3),
    ]
)


class MoCo(nn.Module):
    def __init__(s, K=65536, d=128):
        super().__init__()
        mk = lambda: torchvision.models.resnet50(num_classes=d)
        s.q, s.k = mk(), mk()
        s.k.load_state_dict(s.q.state_dict())
        s.k.requires_grad_(False)
        s.register_buffer("queue", F.normalize(torch.randn(d, K), dim=0))
        s.register_buffer("ptr", torch.zeros(1, dtype=torch.long))
        s.K = K

    @torch.no_grad()
    def push(s, k):
        p = int(s.ptr)
        s.queue[:, p : p + len(k)] = k.T
        s.ptr[0] = (p + len(k)) % s.K

    def forward(s, a, b):
        q = F.normalize(s.q(a), dim=1)
        with torch.no_grad():
            for x, y in zip(s.k.parameters(), s.q.parameters()):
                x.mul_(0.999).add_(y, alpha=0.001)
            i = torch.randperm(len(b), device=b.device)
            k = F.normalize(s.k(b[i]), dim=1)[torch.argsort(i)]
        lo = torch.cat([(q * k).sum(1, keepdim=True), q @ s.queue.clone().detach()], 1) / 0.2
        s.push(k)
        return F.cross_entropy(lo, torch.zeros(len(a), dtype=torch.long, device=a.device))


m = MoCo().cuda().to(memory_format=torch.channels_last)
opt = torch.optim.SGD(m.q.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
sc = torch.amp.GradScaler()
for i in range(4):
    x = torch.randint(0, 255, (128, 3, 160, 160), dtype=torch.uint8).cuda().float() / 255
    a, b = aug(x), aug(x)
    with torch.autocast("cuda"):
        l = m(a.to(memory_format=torch.channels_last), b.to(memory_format=torch.channels_last))
    sc.scale(l).backward()
    sc.step(opt)
    sc.update()
    opt.zero_grad()
    print(i, l.item())
