"""A detector of one stage with three scales, as people train on their own pictures: SiLU, fp16, EMA, several resolutions."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


def conv(a, b, k=1, s=1):
    return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b, eps=1e-3, momentum=0.03), nn.SiLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.one, self.two = conv(c, c, 3), conv(c, c, 3)

    def forward(self, x):
        return x + self.two(self.one(x))


class Split(nn.Module):
    def __init__(self, a, b, n):
        super().__init__()
        self.half = b // 2
        self.first, self.last = conv(a, b), conv((2 + n) * self.half, b)
        self.blocks = nn.ModuleList(Bottleneck(self.half) for _ in range(n))

    def forward(self, x):
        parts = list(self.first(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Pool(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last, self.pool = conv(c, c // 2), conv(c * 2, c), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.first(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.last(torch.cat(parts, 1))


class Detector(nn.Module):
    def __init__(self, w=48, classes=80):
        super().__init__()
        self.low = nn.Sequential(conv(3, w, 3, 2), conv(w, 2 * w, 3, 2), Split(2 * w, 2 * w, 2), conv(2 * w, 4 * w, 3, 2), Split(4 * w, 4 * w, 4))
        self.middle = nn.Sequential(conv(4 * w, 8 * w, 3, 2), Split(8 * w, 8 * w, 4))
        self.high = nn.Sequential(conv(8 * w, 12 * w, 3, 2), Split(12 * w, 12 * w, 2), Pool(12 * w))
        self.to_middle, self.to_low = Split(20 * w, 8 * w, 2), Split(12 * w, 4 * w, 2)
        self.down_low, self.down_middle = conv(4 * w, 4 * w, 3, 2), conv(8 * w, 8 * w, 3, 2)
        self.out_middle, self.out_high = Split(12 * w, 8 * w, 2), Split(20 * w, 12 * w, 2)
        self.boxes = nn.ModuleList(nn.Sequential(conv(c, 64, 3), conv(64, 64, 3), nn.Conv2d(64, 64, 1)) for c in (4 * w, 8 * w, 12 * w))
        self.classes = nn.ModuleList(nn.Sequential(conv(c, 192, 3), conv(192, 192, 3), nn.Conv2d(192, classes, 1)) for c in (4 * w, 8 * w, 12 * w))

    def forward(self, x):
        low = self.low(x)
        middle = self.middle(low)
        high = self.high(middle)
        m = self.to_middle(torch.cat([F.interpolate(high, scale_factor=2.0), middle], 1))
        a = self.to_low(torch.cat([F.interpolate(m, scale_factor=2.0), low], 1))
        b = self.out_middle(torch.cat([self.down_low(a), m], 1))
        c = self.out_high(torch.cat([self.down_middle(b), high], 1))
        made = [torch.cat([of_box(s), of_class(s)], 1).flatten(2) for s, of_box, of_class in zip((a, b, c), self.boxes, self.classes, strict=True)]
        return torch.cat(made, 2).transpose(1, 2).contiguous()


torch.manual_seed(0)
model = Detector().cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.937, nesterov=True)
scaler = torch.amp.GradScaler("cuda")
bins = torch.arange(16, dtype=torch.float, device="cuda")

for size in (640, 480, 640, 800):
    images = torch.randint(0, 256, (12, 3, 640, 640), dtype=torch.uint8).cuda(non_blocking=True).float() / 255
    images = F.interpolate(images, size=(size, size), mode="bilinear", align_corners=False)
    with torch.autocast("cuda"):
        found = model(images)
        boxes, scores = found.split([64, 80], 2)
        distances = boxes.unflatten(2, (4, 16)).softmax(3).matmul(bins.type(boxes.dtype))
        wanted = torch.zeros_like(scores)
        wanted[:, ::97, 7] = 1.0
        foreground = wanted.amax(2) > 0
        loss = F.binary_cross_entropy_with_logits(scores, wanted, reduction="none").sum() / 100
        weight = wanted.sum(2)[:, ::97, None]
        loss = loss + ((distances[:, ::97] - 3.0).abs() * weight).sum() / foreground.sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    with torch.no_grad():
        for kept, value in zip(average.state_dict().values(), model.state_dict().values(), strict=True):
            if kept.dtype.is_floating_point:
                kept.mul_(0.9).add_(value.detach(), alpha=0.1)
    print("loss", loss.item(), flush=True)
