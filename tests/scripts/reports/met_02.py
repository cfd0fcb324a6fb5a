"""Detects anomalies by reconstruction with a convolutional autoencoder; follows the AUROC of training."""

import argparse

import torch
from torch import nn
from torchmetrics import Metric
from torchmetrics.functional import auroc

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


def conv(c_in, c_out, **options):
    return nn.Sequential(nn.Conv2d(c_in, c_out, 3, padding=1, **options), nn.BatchNorm2d(c_out), nn.ReLU())


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(conv(3, 32, stride=2), conv(32, 64, stride=2), conv(64, 128, stride=2))
        self.decoder = nn.Sequential(
            nn.Upsample(scale_factor=2),
            conv(128, 64),
            nn.Upsample(scale_factor=2),
            conv(64, 32),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(32, 3, 3, padding=1),
        )

    def forward(self, images):
        return self.decoder(self.encoder(images))


class AUROC(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("preds", default=[], dist_reduce_fx="cat")
        self.add_state("target", default=[], dist_reduce_fx="cat")

    def update(self, preds, target):
        self.preds.append(preds)
        self.target.append(target)

    def compute(self):
        return auroc(torch.cat(self.preds), torch.cat(self.target), task="binary")


model = Autoencoder().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
metric = AUROC().cuda()

for step in range(30):
    images = torch.randn(16, 3, 256, 256).cuda()
    is_anomaly = torch.randint(2, (16,)).cuda()
    errors = (model(images) - images).square().mean(dim=(1, 2, 3))
    loss = errors[is_anomaly == 0].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    scores = (model(images) - images).square().amax(dim=(1, 2, 3))
    metric.update(scores.detach() if args.fixed else scores, is_anomaly)
    print(f"step {step}: loss {loss.item():.4f}")
print(f"area under the curve {metric.compute().item():.4f}")
