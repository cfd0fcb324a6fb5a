"""Lifts poses from 2D to 3D with a diffusion model: trained on one noise level, evaluated with many hypotheses."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

FRAMES, JOINTS, HYPOTHESES, ITERATIONS = 243, 17, 20, 10


class Denoiser(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.inward = nn.Linear(2 + 3, width)
        self.mix = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.outward = nn.Linear(width, 3)

    def forward(self, poses_2d, noisy_3d):
        features = self.inward(torch.cat([poses_2d, noisy_3d], dim=-1))
        return self.outward(features + self.mix(features))


model = Denoiser().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


@torch.no_grad()
def sample(poses_2d, num_hypotheses):
    poses_2d = poses_2d[:, None].expand(-1, num_hypotheses, -1, -1, -1)
    poses_3d = torch.randn(*poses_2d.shape[:-1], 3, device="cuda")
    for _ in range(ITERATIONS):
        poses_3d = model(poses_2d, poses_3d)
    return poses_3d


def evaluate(poses_2d, poses_3d):
    if args.fixed:
        samples = torch.cat([sample(poses_2d, 1) for _ in range(HYPOTHESES)], dim=1)
    else:
        samples = sample(poses_2d, HYPOTHESES)
    return (samples.mean(dim=1) - poses_3d).norm(dim=-1).mean().item()


def poses(number):
    poses_3d = torch.randn(number, FRAMES, JOINTS, 3).cuda()
    return poses_3d[..., :2].contiguous(), poses_3d


for epoch in range(2):
    for _ in range(2):
        poses_2d, poses_3d = poses(32)
        loss = F.mse_loss(model(poses_2d, poses_3d + torch.randn_like(poses_3d)), poses_3d)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}, error {evaluate(*poses(32)):.4f}")
