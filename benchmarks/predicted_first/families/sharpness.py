"""Small pictures on a wide residual network: two passes a step to a flatter minimum, SGD, cut-out pictures, batch statistics kept."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.norm_one, self.one = nn.BatchNorm2d(a), nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.norm_two, self.two = nn.BatchNorm2d(b), nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.drop = nn.Dropout(0.3)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False) if a != b else None

    def forward(self, x):
        y = F.relu(self.norm_one(x))
        z = self.two(self.drop(F.relu(self.norm_two(self.one(y)))))
        return z + (x if self.skip is None else self.skip(y))


def network(depth=4, widen=10):
    parts, a = [nn.Conv2d(3, 16, 3, padding=1, bias=False)], 16
    for b, stride in ((16 * widen, 1), (32 * widen, 2), (64 * widen, 2)):
        for index in range(depth):
            parts.append(Block(a, b, stride if index == 0 else 1))
            a = b
    return nn.Sequential(*parts, nn.BatchNorm2d(a), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(a, 100))


class Sharpness(torch.optim.Optimizer):
    """Climbs to the worst neighbour, then steps from where it was."""

    def __init__(self, parameters, rho, **options):
        super().__init__(parameters, {"rho": rho, **options})
        self.base = torch.optim.SGD(self.param_groups, **options)

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm(2) for group in self.param_groups for p in group["params"]]).norm(2)
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.data.clone()
                p.add_(p.grad * (group["rho"] / (norm + 1e-12)))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data = self.state[p]["old"]
        self.base.step()
        self.zero_grad()


torch.manual_seed(0)
model = network().cuda()
optimizer = Sharpness(model.parameters(), 0.05, lr=0.1, momentum=0.9, weight_decay=5e-4)

for _ in range(4):
    images, labels = torch.randn(128, 3, 32, 32).cuda(), torch.randint(0, 100, (128,)).cuda()
    images[:, :, 8:24, 8:24] = 0
    loss = F.cross_entropy(model(images), labels, label_smoothing=0.1)
    loss.backward()
    optimizer.climb()
    F.cross_entropy(model(images), labels, label_smoothing=0.1).backward()
    optimizer.descend()
    print("loss", loss.item(), flush=True)
