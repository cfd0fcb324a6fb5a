"""Train an encoder on whitened features; whitening by Newton's iteration or by an eigendecomposition."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--whiten", default="newton", choices=["newton", "eigh"])
parser.add_argument("--dead-channels", type=int, default=0, help="their eigenvalues are all the same")
parser.add_argument("--broken-gradients", default="stepped", choices=["stepped", "skipped", "zeroed"])
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

CHANNELS = 8


def newton(covariance):
    """The inverse square root by coupled Newton-Schulz iterations."""
    eye, size = torch.eye(CHANNELS), covariance.norm()
    y, z = covariance / size, eye
    for _ in range(25):
        t = 1.5 * eye - 0.5 * z @ y
        y, z = y @ t, t @ z
    return z / size.sqrt()


def eigh(covariance):
    """The inverse square root by eigenvectors, whose gradient divides by the gaps between eigenvalues."""
    values, vectors = torch.linalg.eigh(covariance)
    return vectors @ torch.diag(values.rsqrt()) @ vectors.T


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(12, CHANNELS, bias=False)
        self.head = nn.Linear(CHANNELS, 3)
        alive = torch.ones(CHANNELS)
        alive[: args.dead_channels] = 0
        self.register_buffer("alive", alive)

    def forward(self, x):
        features = torch.tanh(self.project(x)) * self.alive
        covariance = features.T @ features / len(features) + 0.1 * torch.eye(CHANNELS)
        return self.head(features @ (newton if args.whiten == "newton" else eigh)(covariance))


torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
data = torch.Generator().manual_seed(1)
for step in range(args.steps):
    x = torch.randn(32, 12, generator=data)
    loss = nn.functional.mse_loss(model(x), x[:, :3])
    optimizer.zero_grad()
    loss.backward()
    print("step", step, "loss", loss.item())
    if args.broken_gradients == "skipped" and not all(p.grad.isfinite().all() for p in model.parameters()):
        continue
    if args.broken_gradients == "zeroed":
        for parameter in model.parameters():
            parameter.grad.nan_to_num_(0, 0, 0)
    optimizer.step()
