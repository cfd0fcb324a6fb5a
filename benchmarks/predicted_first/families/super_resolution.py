"""Sharper images: residual groups with channel attention, pixel shuffle, and a loss on the features of a frozen VGG."""

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(True), nn.Conv2d(width, width, 3, padding=1))
        self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 16, 1), nn.ReLU(True), nn.Conv2d(width // 16, width, 1), nn.Sigmoid())

    def forward(self, x):
        made = self.body(x)
        return x + made * self.weigh(made)


class Sharpen(nn.Module):
    def __init__(self, width=64, groups=4, each=8):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.groups = nn.ModuleList(nn.Sequential(*(Attention(width) for _ in range(each)), nn.Conv2d(width, width, 3, padding=1)) for _ in range(groups))
        self.tail = nn.Sequential(nn.Conv2d(width, width * 4, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, width * 4, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, x):
        first = x = self.head(x)
        for group in self.groups:
            x = x + group(x)
        return self.tail(x + first)


torch.manual_seed(0)
model = Sharpen().cuda()
features = torchvision.models.vgg19(weights=None).features[:36].cuda().eval().requires_grad_(False)
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.Adam(model.parameters(), 1e-4, amsgrad=True)

for _ in range(4):
    sharp = torch.rand(16, 3, 192, 192).cuda()
    blurred = F.interpolate(sharp, scale_factor=0.25, mode="bicubic", antialias=True)
    made = model(blurred)
    loss = F.l1_loss(made, sharp) + 0.1 * F.mse_loss(features(made), features(sharp))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
    print("loss", loss.item(), flush=True)
