"""A U-Net for volumes: 3D convolutions, instance norm, Dice loss, fp16 with a scaler, SGD with Nesterov's momentum."""

import torch
import torch.nn.functional as F
from torch import nn


def block(inputs, outputs):
    layers = []
    for channels in (inputs, outputs):
        layers += [nn.Conv3d(channels, outputs, 3, padding=1, bias=False), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01, inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256, 320)):
        super().__init__()
        self.down = nn.ModuleList(block(a, b) for a, b in zip((1, *widths), widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose3d(b, a, 2, 2) for a, b in zip(widths, widths[1:], strict=False))
        self.join = nn.ModuleList(block(2 * a, a) for a in widths[:-1])
        self.heads = nn.ModuleList(nn.Conv3d(a, 4, 1) for a in widths[:2])

    def forward(self, x):
        kept = []
        for place, layer in enumerate(self.down):
            x = layer(F.max_pool3d(x, 2) if place else x)
            kept.append(x)
        outputs = []
        for place in reversed(range(len(self.up))):
            x = self.join[place](torch.cat([self.up[place](x), kept[place]], 1))
            if place < len(self.heads):
                outputs.append(self.heads[place](x))
        return outputs


def dice_and_entropy(logits, labels):
    shown = logits.softmax(1)
    wanted = F.one_hot(labels, 4).movedim(-1, 1).float()
    overlap = (shown * wanted).sum((2, 3, 4))
    dice = (2 * overlap + 1) / (shown.sum((2, 3, 4)) + wanted.sum((2, 3, 4)) + 1)
    return F.cross_entropy(logits, labels) + 1 - dice.mean()


torch.manual_seed(0)
model = UNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-2, momentum=0.99, nesterov=True, weight_decay=3e-5)
scaler = torch.amp.GradScaler("cuda")

for _ in range(4):
    image, labels = torch.randn(2, 1, 96, 128, 128).cuda(), torch.randint(0, 4, (2, 96, 128, 128)).cuda()
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.float16):
        half, whole = model(image)
        loss = dice_and_entropy(whole.float(), labels) + 0.5 * dice_and_entropy(half.float(), labels[:, ::2, ::2, ::2])
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 12)
    scaler.step(optimizer)
    scaler.update()
    print("loss", loss.item(), flush=True)
