"""The classic U-Net on slices of one channel, in single precision: transposed convolutions, Dice, a validation in between."""

import torch
import torch.nn.functional as F
from torch import nn


def double(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
        nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
    )  # fmt: skip


class UNet(nn.Module):
    def __init__(self, channels=1, classes=4, widths=(64, 128, 256, 512, 1024)):
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((channels, *widths[:-1]), widths, strict=True))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.join = nn.ModuleList(double(a, b) for a, b in pairs)
        self.out = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for index, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if index else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


def dice(probabilities, truth):
    both = (probabilities * truth).sum((2, 3))
    return 1 - (2 * both + 1e-6) / (probabilities.sum((2, 3)) + truth.sum((2, 3)) + 1e-6)


torch.manual_seed(0)
model = UNet().to("cuda")
optimizer = torch.optim.RMSprop(model.parameters(), 1e-5, weight_decay=1e-8, momentum=0.999, foreach=True)

for _ in range(3):
    model.train()
    for _ in range(2):
        slices = torch.randn(6, 1, 320, 320).to("cuda")
        masks = torch.randint(0, 4, (6, 320, 320)).to("cuda")
        logits = model(slices)
        truth = F.one_hot(masks, 4).permute(0, 3, 1, 2).float()
        loss = F.cross_entropy(logits, masks) + dice(F.softmax(logits, 1).float(), truth).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        logits = model(torch.randn(6, 1, 320, 320).to("cuda"))
        score = dice(F.one_hot(logits.argmax(1), 4).permute(0, 3, 1, 2).float(), truth).mean()
    print("loss", loss.item(), score.item(), flush=True)
