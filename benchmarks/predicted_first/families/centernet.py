"""Objects as points (CenterNet) on a high-resolution network: four streams that exchange, heatmaps with focal loss, a pinned loader."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES, SIZE, MAX_OBJECTS, BATCH, BN_MOMENTUM = 80, 512, 128, 16, 0.1
WIDTHS = (32, 64, 128, 256)


def gaussian2d(radius):
    sigma = (2 * radius + 1) / 6
    y, x = np.ogrid[-radius : radius + 1, -radius : radius + 1]
    return np.exp(-(x * x + y * y) / (2 * sigma * sigma)).astype(np.float32)


class Boxes(Dataset):
    def __len__(self):
        return 4 * BATCH

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        out = SIZE // 4
        hm = np.zeros((CLASSES, out, out), np.float32)
        wh, reg = np.zeros((MAX_OBJECTS, 2), np.float32), np.zeros((MAX_OBJECTS, 2), np.float32)
        ind, mask = np.zeros(MAX_OBJECTS, np.int64), np.zeros(MAX_OBJECTS, np.uint8)
        for k in range(rng.integers(3, 40)):
            ct, radius = rng.uniform(8, out - 8, 2), int(rng.integers(2, 7))
            x, y = ct.astype(int)
            patch = hm[rng.integers(CLASSES), y - radius : y + radius + 1, x - radius : x + radius + 1]
            np.maximum(patch, gaussian2d(radius)[: patch.shape[0], : patch.shape[1]], out=patch)
            wh[k], reg[k], ind[k], mask[k] = rng.uniform(4, 60, 2), ct - ct.astype(int), y * out + x, 1
        image = rng.standard_normal((3, SIZE, SIZE), dtype=np.float32)
        return {"input": image, "hm": hm, "reg_mask": mask, "ind": ind, "wh": wh, "reg": reg}


class BasicBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c, momentum=BN_MOMENTUM)
        self.conv2, self.bn2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c, momentum=BN_MOMENTUM)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x
        return self.relu(out)


def conv_bn(a, b, k=3, s=1, relu=True):
    layers = [nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b, momentum=BN_MOMENTUM)]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


class HighResolutionModule(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(BasicBlock(WIDTHS[i]) for _ in range(4))) for i in range(n))
        self.fuse = nn.ModuleList(nn.ModuleList(self.path(j, i) for j in range(n)) for i in range(n))

    def path(self, j, i):
        if j == i:
            return nn.Identity()
        if j > i:
            return nn.Sequential(conv_bn(WIDTHS[j], WIDTHS[i], 1, relu=False), nn.Upsample(scale_factor=2 ** (j - i), mode="nearest"))
        steps = [conv_bn(WIDTHS[j], WIDTHS[j] if k < i - j - 1 else WIDTHS[i], 3, 2, k < i - j - 1) for k in range(i - j)]
        return nn.Sequential(*steps)

    def forward(self, xs):
        xs = [branch(x) for branch, x in zip(self.branches, xs)]
        out = []
        for paths in self.fuse:
            y = paths[0](xs[0])
            for j in range(1, len(xs)):
                y = y + paths[j](xs[j])
            out.append(F.relu(y))
        return out


class CenterNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 64, 3, 2), conv_bn(64, WIDTHS[0], 3, 2), BasicBlock(WIDTHS[0]))
        self.transitions = nn.ModuleList(conv_bn(WIDTHS[i], WIDTHS[i + 1], 3, 2) for i in range(3))
        self.stages = nn.ModuleList(nn.Sequential(*(HighResolutionModule(n) for _ in range(k))) for n, k in ((2, 1), (3, 3), (4, 2)))
        for name, k in (("hm", CLASSES), ("wh", 2), ("reg", 2)):
            head = nn.Sequential(nn.Conv2d(sum(WIDTHS), 64, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(64, k, 1))
            setattr(self, name, head)
        self.hm[-1].bias.data.fill_(-2.19)

    def forward(self, x):
        xs = [self.stem(x)]
        for transition, stage in zip(self.transitions, self.stages):
            xs = stage([*xs, transition(xs[-1])])
        size = xs[0].shape[2:]
        y = torch.cat([xs[0]] + [F.interpolate(z, size=size, mode="bilinear", align_corners=True) for z in xs[1:]], 1)
        return {name: getattr(self, name)(y) for name in ("hm", "wh", "reg")}


def neg_loss(pred, gt):
    pos_inds, neg_inds = gt.eq(1).float(), gt.lt(1).float()
    pos_loss = (torch.log(pred) * torch.pow(1 - pred, 2) * pos_inds).sum()
    neg_loss = (torch.log(1 - pred) * torch.pow(pred, 2) * torch.pow(1 - gt, 4) * neg_inds).sum()
    num_pos = pos_inds.sum()
    return -neg_loss if num_pos == 0 else -(pos_loss + neg_loss) / num_pos


def gather_feat(feat, ind):
    feat = feat.permute(0, 2, 3, 1).contiguous().view(feat.size(0), -1, feat.size(1))
    return feat.gather(1, ind.unsqueeze(2).expand(ind.size(0), ind.size(1), feat.size(2)))


def reg_l1(output, mask, ind, target):
    mask = mask.unsqueeze(2).expand_as(target).float()
    return F.l1_loss(gather_feat(output, ind) * mask, target * mask, reduction="sum") / (mask.sum() + 1e-4)


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(Boxes(), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=True, drop_last=True)
    model = CenterNet().cuda()
    optimizer = torch.optim.Adam(model.parameters(), 1.25e-4)
    for i, batch in enumerate(loader):
        batch = {k: v.to(device="cuda", non_blocking=True) for k, v in batch.items()}
        output = model(batch["input"])
        hm = torch.clamp(output["hm"].sigmoid_(), min=1e-4, max=1 - 1e-4)
        loss = neg_loss(hm, batch["hm"]) + 0.1 * reg_l1(output["wh"], batch["reg_mask"], batch["ind"], batch["wh"])
        loss = loss + reg_l1(output["reg"], batch["reg_mask"], batch["ind"], batch["reg"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(i, loss.item(), flush=True)
        del output, loss
    model.eval()
    with torch.no_grad():
        for scale in (0.75, 1.0, 1.5):  # the same pictures at three scales, each with its mirror
            s = int(SIZE * scale) // 32 * 32
            x = F.interpolate(batch["input"], size=(s, s), mode="bilinear", align_corners=False)
            out = model(torch.cat([x, torch.flip(x, [3])]))
            heat = out["hm"].sigmoid_()
            heat = (heat[:BATCH] + torch.flip(heat[BATCH:], [3])) / 2
            heat = heat * (F.max_pool2d(heat, 3, stride=1, padding=1) == heat).float()
            scores, inds = torch.topk(heat.view(BATCH, -1), 100)
            wh = gather_feat(out["wh"][:BATCH], inds % (heat.size(2) * heat.size(3)))
            print(scale, scores.max().item(), wh.cpu().numpy().shape)
