"""Three heads on one encoder: depth, normals and labels of a scene, a loss each."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.models import resnet34

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class SceneModel(nn.Module):
    def __init__(self):
        super().__init__()
        backbone = resnet34(weights=None)
        self.encoder = nn.Sequential(*list(backbone.children())[:-3])
        self.depth = nn.Conv2d(256, 1, 3, padding=1)
        self.normals = nn.Conv2d(256, 3, 3, padding=1)
        self.labels = nn.Conv2d(256, 20, 3, padding=1)

    def forward(self, images):
        features = self.encoder(images)
        return self.depth(features), self.normals(features), self.labels(features)


model = SceneModel().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

for step in range(10):
    images = torch.randn(32, 3, 256, 256).cuda()
    depth = torch.rand(32, 1, 16, 16).cuda()
    normals = torch.randn(32, 3, 16, 16).cuda()
    labels = torch.randint(20, (32, 16, 16)).cuda()

    depth_out, normals_out, labels_out = model(images)
    depth_loss = F.l1_loss(depth_out, depth)
    normals_loss = F.mse_loss(normals_out, normals)
    labels_loss = F.cross_entropy(labels_out, labels)

    optimizer.zero_grad()
    if args.fixed:
        (depth_loss + normals_loss + labels_loss).backward()
    else:
        depth_loss.backward(retain_graph=True)
        normals_loss.backward(retain_graph=True)
        labels_loss.backward(retain_graph=True)
    optimizer.step()
    print(f"step {step}: {depth_loss.item():.3f} {normals_loss.item():.3f} {labels_loss.item():.3f}")
