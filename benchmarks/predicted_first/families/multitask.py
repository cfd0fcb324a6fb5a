"""Three tasks on one SegNet (pooling indices, MaxUnpool2d): each task's gradients by themselves, projected off each other."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE, BATCH = (288, 384), 8


def block(a, b, n):
    layers = []
    for _ in range(n):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
        a = b
    return nn.Sequential(*layers)


class SegNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512, 512), classes=13):
        super().__init__()
        ins = (3, *widths[:-1])
        self.down = nn.ModuleList(block(a, b, 2 if i < 2 else 3) for i, (a, b) in enumerate(zip(ins, widths)))
        outs = (widths[0], *widths[:-1])
        self.up = nn.ModuleList(block(b, a, 2 if i < 2 else 3) for i, (a, b) in enumerate(zip(outs, widths)))
        self.pool, self.unpool = nn.MaxPool2d(2, 2, return_indices=True), nn.MaxUnpool2d(2, 2)
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, n, 1)) for n in (classes, 1, 3)
        )
        self.logsigma = nn.Parameter(torch.tensor([-0.5, -0.5, -0.5]))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.xavier_normal_(m.weight)
                nn.init.constant_(m.bias, 0)

    def shared(self):
        return [p for part in (self.down, self.up) for p in part.parameters()]

    def forward(self, x):
        where = []
        for part in self.down:
            x = part(x)
            size = x.size()
            x, index = self.pool(x)
            where.append((index, size))
        for part, (index, size) in zip(reversed(self.up), reversed(where)):
            x = part(self.unpool(x, index, output_size=size))
        a, b, c = (head(x) for head in self.heads)
        return F.log_softmax(a, dim=1), b, c / torch.norm(c, p=2, dim=1, keepdim=True)


def fit(pred, truth, task):
    mask = (torch.sum(truth, dim=1) != 0).type(torch.FloatTensor).unsqueeze(1).to(pred.device)
    if task == 0:
        return F.nll_loss(pred, truth.squeeze(1), ignore_index=-1)
    if task == 1:
        return torch.sum(torch.abs(pred - truth) * mask) / torch.nonzero(mask, as_tuple=False).size(0)
    return 1 - torch.sum((pred * truth) * mask) / torch.nonzero(mask, as_tuple=False).size(0)


def flatten(grads):
    return torch.cat([g.reshape(-1) for g in grads])


def pcgrad(grads):
    out = [g.clone() for g in grads]
    for g in out:
        random.shuffle(grads)
        for other in grads:
            dot = torch.dot(g, other)
            if dot < 0:
                g -= dot * other / (other.norm() ** 2)
    return torch.stack(out).mean(0)


def confusion(pred, truth, mat, n=13):
    pred, truth = pred.argmax(1).flatten(), truth.flatten()
    k = (truth >= 0) & (truth < n)
    inds = n * truth[k].to(torch.int64) + pred[k]
    mat += torch.bincount(inds, minlength=n**2).reshape(n, n)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = SegNet().to(device)
optimizer = torch.optim.RAdam(model.parameters(), lr=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
mat = torch.zeros(13, 13, dtype=torch.int64, device=device)
for step in range(4):
    data = torch.randn(BATCH, 3, *SIZE).to(device)
    label = torch.randint(-1, 13, (BATCH, 1, *SIZE)).type(torch.LongTensor).to(device)
    depth = torch.rand(BATCH, 1, *SIZE).to(device)
    normal = F.normalize(torch.randn(BATCH, 3, *SIZE)).to(device)
    outs = model(data)
    losses = [fit(o, t, i) for i, (o, t) in enumerate(zip(outs, (label, depth, normal)))]
    shared = model.shared()
    grads = []
    for loss in losses:
        grads.append(flatten(torch.autograd.grad(loss, shared, retain_graph=True)))
    merged = pcgrad(grads)
    optimizer.zero_grad()
    total = sum(1 / (2 * torch.exp(s)) * l + s / 2 for s, l in zip(model.logsigma, losses))
    total.backward()
    at = 0
    for p in shared:
        p.grad.copy_(merged[at : at + p.numel()].view_as(p))
        at += p.numel()
    optimizer.step()
    scheduler.step()
    with torch.no_grad():
        confusion(outs[0], label, mat)
    print(step, [round(l.item(), 4) for l in losses], flush=True)
model.eval()
with torch.no_grad():
    for _ in range(2):
        outs = model(torch.randn(BATCH, 3, *SIZE, device=device))
        confusion(outs[0], label, mat)
    acc = torch.diag(mat).sum().float() / mat.sum()
    print("accuracy", acc.item())
