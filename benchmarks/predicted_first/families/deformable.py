"""Windows that bend: deformable convolutions with masks in a residual network, a spatial transformer before it."""

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.ops import DeformConv2d, StochasticDepth


class Deformed(nn.Module):
    def __init__(self, a, b, stride=1, groups=2):
        super().__init__()
        self.groups = groups
        self.offsets = nn.Conv2d(a, 27 * groups, 3, stride, 1)
        self.conv = DeformConv2d(a, b, 3, stride, 1, bias=False)

    def forward(self, x):
        rows, columns, mask = self.offsets(x).chunk(3, 1)
        return self.conv(x, torch.cat([rows, columns], 1), mask.sigmoid())


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.narrow, self.wide = nn.Conv2d(width, width // 4, 1, bias=False), nn.Conv2d(width // 4, width, 1, bias=False)
        self.bend, self.drop = Deformed(width // 4, width // 4), StochasticDepth(0.1, "row")
        self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (width // 4, width // 4, width))

    def forward(self, x):
        y = F.relu(self.norms[0](self.narrow(x)))
        y = F.relu(self.norms[1](self.bend(y)))
        return F.relu(x + self.drop(self.norms[2](self.wide(y))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(3, 8, 7), nn.MaxPool2d(4), nn.ReLU(), nn.Conv2d(8, 10, 5), nn.AdaptiveAvgPool2d(8), nn.ReLU(),
            nn.Flatten(), nn.Linear(640, 32), nn.ReLU(), nn.Linear(32, 6),
        )
        layers, a = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for width, depth in ((256, 3), (512, 4), (1024, 3)):
            layers += [nn.Conv2d(a, width, 1 if a == 64 else 2, 1 if a == 64 else 2), *(Block(width) for _ in range(depth))]
            a = width
        self.body, self.head = nn.Sequential(*layers), nn.Linear(a, 200)

    def forward(self, x):
        theta = self.look(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3, device=x.device)
        x = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), padding_mode="reflection", align_corners=False)
        return self.head(F.lp_pool2d(self.body(x), 2, x.shape[-1] // 16).flatten(1))


torch.manual_seed(0)
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
for _ in range(3):
    images, labels = torch.rand(24, 3, 224, 224).cuda(), torch.randint(0, 200, (24,)).cuda()
    loss = F.multi_margin_loss(model(images), labels) + F.cross_entropy(model(images), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
