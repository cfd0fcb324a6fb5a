"""PointPillars by hand: points to pillars by unique, maxima by scatter_reduce, a canvas, anchors assigned by overlaps."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, POINTS, GRID, CELL = 4, 60_000, (496, 432), 0.16
ANCHORS = 2


def voxelize(points, batch):
    coords = torch.floor(points[:, :2] / CELL).long()
    keep = (coords[:, 0] >= 0) & (coords[:, 0] < GRID[1]) & (coords[:, 1] >= 0) & (coords[:, 1] < GRID[0])
    points, coords, batch = points[keep], coords[keep], batch[keep]
    flat = (batch * GRID[0] + coords[:, 1]) * GRID[1] + coords[:, 0]
    pillars, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    return points, coords, pillars, inverse, counts


class PillarNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.linear, self.norm = nn.Linear(9, c, bias=False), nn.BatchNorm1d(c, eps=1e-3, momentum=0.01)
        self.c = c

    def forward(self, points, coords, pillars, inverse, counts, batch_size):
        n = pillars.size(0)
        mean = torch.zeros(n, 3, device=points.device).scatter_add_(0, inverse[:, None].expand(-1, 3), points[:, :3])
        mean = mean / counts[:, None]
        center = (coords.float() + 0.5) * CELL
        features = torch.cat([points, points[:, :3] - mean[inverse], points[:, :2] - center], dim=1)
        x = F.relu(self.norm(self.linear(features)))
        index = inverse[:, None].expand(-1, self.c)
        x = torch.zeros(n, self.c, device=x.device, dtype=x.dtype).scatter_reduce(0, index, x, "amax", include_self=False)
        canvas = torch.zeros(batch_size * GRID[0] * GRID[1], self.c, device=x.device, dtype=x.dtype)
        canvas[pillars] = x
        return canvas.view(batch_size, *GRID, self.c).permute(0, 3, 1, 2).contiguous()


def stage(a, b, n, stride=2):
    layers = []
    for i in range(n + 1):
        layers += [nn.ZeroPad2d(1), nn.Conv2d(a if i == 0 else b, b, 3, stride=stride if i == 0 else 1, bias=False)]
        layers += [nn.BatchNorm2d(b, eps=1e-3, momentum=0.01), nn.ReLU()]
    return nn.Sequential(*layers)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.pillars = PillarNet()
        self.stages = nn.ModuleList([stage(64, 64, 3), stage(64, 128, 5), stage(128, 256, 5)])
        self.ups = nn.ModuleList(
            nn.Sequential(nn.ConvTranspose2d(a, 128, s, s, bias=False), nn.BatchNorm2d(128, eps=1e-3), nn.ReLU())
            for a, s in ((64, 1), (128, 2), (256, 4))
        )
        self.cls, self.box, self.dir = (nn.Conv2d(384, ANCHORS * k, 1) for k in (1, 7, 2))

    def forward(self, points, batch, n):
        x = self.pillars(*voxelize(points, batch), n)
        ups = []
        for down, up in zip(self.stages, self.ups):
            x = down(x)
            ups.append(up(x))
        x = torch.cat(ups, 1)
        flat = lambda y, k: y.permute(0, 2, 3, 1).reshape(n, -1, k)
        return flat(self.cls(x), 1), flat(self.box(x), 7), flat(self.dir(x), 2)


def make_anchors(device):
    h, w = GRID[0] // 2, GRID[1] // 2
    y, x = torch.meshgrid(torch.arange(h, device=device), torch.arange(w, device=device), indexing="ij")
    xy = torch.stack([x, y], -1).float().mul(2 * CELL).view(-1, 1, 2).repeat(1, ANCHORS, 1).view(-1, 2)
    size = torch.tensor([[3.9, 1.6], [1.6, 3.9]], device=device).repeat(h * w, 1)
    return torch.cat([xy - size / 2, xy + size / 2], 1)


def iou(a, b):
    low = torch.max(a[:, None, :2], b[None, :, :2])
    high = torch.min(a[:, None, 2:], b[None, :, 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


def assign(anchors, boxes):
    overlap = iou(anchors, boxes)
    best, at = overlap.max(1)
    labels = torch.full((len(anchors),), -1, dtype=torch.long, device=anchors.device)
    labels[best < 0.45] = 0
    labels[best >= 0.6] = 1
    forced = overlap.max(0).indices
    labels[forced] = 1
    at[forced] = torch.arange(len(boxes), device=at.device)
    return labels, at


def focal(logits, targets, weights, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(logits)
    pt = targets * (1 - p) + (1 - targets) * p
    weight = (targets * alpha + (1 - targets) * (1 - alpha)) * pt.pow(gamma)
    return (F.binary_cross_entropy_with_logits(logits, targets, reduction="none") * weight * weights).sum()


torch.manual_seed(0)
device = torch.device("cuda")
scans = [[torch.rand(POINTS, 4) * torch.tensor([75.0, 85.0, 4.0, 1.0]) - 1.0 for _ in range(BATCH)] for _ in range(4)]
truth = torch.rand(BATCH, 30, 2) * torch.tensor([60.0, 70.0]) + 3.0
truth = torch.cat([truth - torch.tensor([1.9, 0.8]), truth + torch.tensor([1.9, 0.8])], -1).to(device)
model = Detector().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.95, 0.99))
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=100)
anchors = make_anchors(device)
for step, scan in enumerate(scans):
    points = torch.cat(scan).to(device)
    batch = torch.arange(BATCH, device=device).repeat_interleave(torch.tensor([len(s) for s in scan], device=device))
    cls, box, direction = model(points, batch, BATCH)
    losses = []
    for b in range(BATCH):
        labels, at = assign(anchors, truth[b])
        pos = labels == 1
        num = pos.sum().clamp(min=1).float()
        target = truth[b][at[pos]]
        delta = torch.cat([target - anchors[pos], torch.zeros(target.size(0), 3, device=device)], 1)
        loss = focal(cls[b].squeeze(-1), pos.float(), (labels >= 0).float()) / num
        loss = loss + 2 * F.smooth_l1_loss(box[b][pos], delta, reduction="sum", beta=1 / 9) / num
        loss = loss + 0.2 * F.cross_entropy(direction[b][pos], torch.zeros_like(at[pos]), reduction="sum") / num
        losses.append(loss)
    loss = torch.stack(losses).mean()
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    scheduler.step()
    print(step, round(loss.item(), 4), int(pos.sum()), flush=True)
model.eval()
with torch.no_grad():
    cls, box, _ = model(points, batch, BATCH)
    scores, where = torch.sigmoid(cls.squeeze(-1)).topk(500, dim=1)
    boxes = box.gather(1, where.unsqueeze(-1).expand(-1, -1, 7)).cpu()
print(boxes.shape, scores.max().item())
