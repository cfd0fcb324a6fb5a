"""Volumes as nnU-Net trains them: instance norms, a loss at every resolution, fp16, Nesterov, a validation of tiles."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTHS, CLASSES, PATCH = (32, 64, 128, 256, 320, 320), 4, (96, 128, 128)


def block(a, b, stride=1):
    norms = [nn.Conv3d(a, b, 3, stride, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, inplace=True)]
    return nn.Sequential(*norms, nn.Conv3d(b, b, 3, 1, 1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01, inplace=True))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        pairs = list(zip(WIDTHS[:-1], WIDTHS[1:], strict=True))
        self.down = nn.ModuleList([block(1, WIDTHS[0]), *(block(a, b, 2) for a, b in pairs)])
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in reversed(pairs))
        self.merge = nn.ModuleList(block(2 * a, a) for a, _ in reversed(pairs))
        self.heads = nn.ModuleList(nn.Conv3d(a, CLASSES, 1) for a, _ in reversed(pairs))

    def forward(self, x):
        skips, outs = [], []
        for down in self.down:
            x = down(x)
            skips.append(x)
        for up, merge, head, skip in zip(self.up, self.merge, self.heads, reversed(skips[:-1]), strict=True):
            x = merge(torch.cat([up(x), skip], 1))
            outs.append(head(x))
        return outs[::-1]


def loss_of(logits, labels):
    probabilities = logits.float().softmax(1)
    wanted = torch.zeros_like(probabilities).scatter_(1, labels, 1)
    inter = (probabilities * wanted).sum((0, 2, 3, 4))
    dice = (2 * inter + 1e-5) / (probabilities.sum((0, 2, 3, 4)) + wanted.sum((0, 2, 3, 4)) + 1e-5)
    return F.cross_entropy(logits, labels[:, 0]) - dice[1:].mean()


torch.manual_seed(0)
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.99, nesterov=True, weight_decay=3e-5)
scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    volumes, labels = torch.randn(2, 1, *PATCH).cuda(), torch.randint(0, CLASSES, (2, 1, *PATCH)).cuda()
    with torch.autocast("cuda"):
        outs, loss = model(volumes), 0
        for level, logits in enumerate(outs[:-1]):
            wanted = F.interpolate(labels.float(), logits.shape[2:], mode="nearest").long()
            loss = loss + loss_of(logits, wanted) / 2**level
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
    scaler.step(optimizer)
    scaler.update()
    print("loss", loss.item(), flush=True)

model.eval()
case = torch.randn(1, 1, 144, 192, 192).cuda()
votes, counts = torch.zeros(1, CLASSES, *case.shape[2:], device="cuda"), torch.zeros(1, 1, *case.shape[2:], device="cuda")
with torch.no_grad(), torch.autocast("cuda"):
    for z in (0, 48):
        for y in (0, 64):
            for x in (0, 64):
                where = (slice(None), slice(None), slice(z, z + 96), slice(y, y + 128), slice(x, x + 128))
                for axes in ((), (2,), (3, 4)):
                    votes[where] += model(case[where].flip(axes))[0].flip(axes)
                counts[where] += 3
print("voxels", (votes / counts).argmax(1).sum().item(), flush=True)
