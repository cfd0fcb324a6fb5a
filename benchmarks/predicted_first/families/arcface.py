"""ArcFace over 100,000 faces with hard triplets and centres: fp16, a copy stream that fetches ahead, embeddings gathered."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FACES, BATCH, STEPS = 100_000, 192, 6


class Faces(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        picture = torch.randint(0, 256, (3, 112, 112), dtype=torch.uint8, generator=g)
        return picture, (i // 4 * 7919) % FACES


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.mean = torch.tensor([127.5] * 3).cuda().view(1, 3, 1, 1)
        self.preload()

    def preload(self):
        try:
            self.picture, self.label = next(self.loader)
        except StopIteration:
            self.picture = None
            return
        with torch.cuda.stream(self.stream):
            self.picture = self.picture.cuda(non_blocking=True)
            self.label = self.label.cuda(non_blocking=True)
            self.picture = self.picture.float().sub_(self.mean).div_(self.mean)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        picture, label = self.picture, self.label
        if picture is None:
            return None, None
        picture.record_stream(torch.cuda.current_stream())
        label.record_stream(torch.cuda.current_stream())
        self.preload()
        return picture, label


class IBlock(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(a, eps=1e-5), nn.Conv2d(a, b, 3, padding=1, bias=False)
        self.bn2, self.prelu = nn.BatchNorm2d(b), nn.PReLU(b)
        self.conv2, self.bn3 = nn.Conv2d(b, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.down = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)) if stride > 1 else None

    def forward(self, x):
        out = self.bn2(self.conv1(self.bn1(x)))
        out = self.bn3(self.conv2(self.prelu(out)))
        out += x if self.down is None else self.down(x)
        return out


class IResNet(nn.Module):
    def __init__(self, depths=(3, 4, 14, 3)):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.PReLU(64))
        layers, a = [], 64
        for b, n in zip((64, 128, 256, 512), depths):
            for k in range(n):
                layers.append(IBlock(a, b, 2 if k == 0 else 1))
                a = b
        self.layers = nn.Sequential(*layers)
        self.bn, self.drop = nn.BatchNorm2d(512), nn.Dropout(0.4, inplace=True)
        self.fc, self.features = nn.Linear(512 * 7 * 7, 512), nn.BatchNorm1d(512)

    def forward(self, x):
        with torch.autocast("cuda"):
            x = self.layers(self.stem(x))
            x = self.drop(torch.flatten(self.bn(x), 1))
        x = self.fc(x.float())
        return self.features(x)


class ArcMargin(nn.Module):
    def __init__(self, s=64.0, m=0.5):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(FACES, 512))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.cos_m, self.sin_m = s, math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - torch.pow(cosine, 2)).clamp(0, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros(cosine.size(), device="cuda")
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return ((one_hot * phi) + ((1.0 - one_hot) * cosine)) * self.s


def hard_triplets(x, label, margin=0.3):
    dist = torch.cdist(x, x)
    same = label.unsqueeze(0) == label.unsqueeze(1)
    far = dist.masked_fill(~same, 0).max(1)[0]
    near = dist.masked_fill(same, float("inf")).min(1)[0]
    return F.margin_ranking_loss(near, far, torch.ones_like(near), margin=margin)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = False
    loader = DataLoader(Faces(), batch_size=BATCH, shuffle=False, num_workers=2, pin_memory=True, drop_last=True)
    backbone, head = IResNet().cuda(), ArcMargin().cuda()
    params = [{"params": backbone.parameters()}, {"params": head.parameters(), "weight_decay": 5e-4}]
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True)
    scaler = torch.amp.GradScaler("cuda", init_scale=256.0, growth_interval=100)
    centers = torch.zeros(FACES, 512, device="cuda")
    gallery, names = [], []
    prefetcher = Prefetcher(loader)
    picture, label = prefetcher.next()
    step = 0
    while picture is not None:
        x = backbone(picture)
        loss = F.cross_entropy(head(x, label), label) + hard_triplets(x, label)
        loss = loss + 1e-3 * (x - centers[label]).pow(2).sum(1).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(backbone.parameters(), 5)
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            count = torch.ones(FACES, device="cuda").index_add_(0, label, torch.ones(len(label), device="cuda"))
            centers.index_add_(0, label, 0.5 * (x.detach() - centers[label]) / count[label].unsqueeze(1))
        gallery.append(F.normalize(x.detach()))
        names.append(label)
        print(step, loss.item(), flush=True)
        picture, label = prefetcher.next()
        step += 1
    gallery, names = torch.cat(gallery), torch.cat(names)
    scores = gallery @ gallery.t()
    scores.fill_diagonal_(-1)
    top = names[scores.topk(5, dim=1).indices]
    print("recall", (top == names[:, None]).any(1).float().mean().item())
