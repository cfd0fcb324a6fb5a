"""Gaussian processes: learnt features, exact likelihoods by Cholesky in float64, then inducing points with a variational bound."""

import math

import torch
from torch import nn

POINTS, DIMS, INDUCING, OUTPUTS = 4096, 8, 512, 4
torch.manual_seed(0)


class Kernel(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.length, self.scale = nn.Parameter(torch.zeros(dims)), nn.Parameter(torch.zeros(()))

    def forward(self, a, b):
        distances = torch.cdist(a / self.length.exp(), b / self.length.exp()) * math.sqrt(5)
        return self.scale.exp() * (1 + distances + distances.square() / 3) * torch.exp(-distances)


features = nn.Sequential(nn.Linear(DIMS, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 2)).double().cuda()
kernel, noise = Kernel(2).double().cuda(), nn.Parameter(torch.tensor(-2.0, dtype=torch.double, device="cuda"))
optimizer = torch.optim.Adam([*features.parameters(), *kernel.parameters(), noise], 0.01)
x, y = torch.randn(POINTS, DIMS, dtype=torch.double).cuda(), torch.randn(POINTS, dtype=torch.double).cuda()
for _ in range(3):
    optimizer.zero_grad()
    z = features(x)
    covariance = kernel(z, z) + noise.exp() * torch.eye(POINTS, dtype=torch.double, device="cuda")
    factor = torch.linalg.cholesky(covariance)
    weights = torch.cholesky_solve(y[:, None], factor)
    loss = 0.5 * (y @ weights[:, 0]) + factor.diagonal().log().sum() + 0.5 * POINTS * math.log(2 * math.pi)
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
with torch.no_grad():
    z = features(x)
    factor = torch.linalg.cholesky(kernel(z, z) + noise.exp() * torch.eye(POINTS, dtype=torch.double, device="cuda"))
    weights = torch.cholesky_solve(y[:, None], factor)
    new = features(torch.randn(2000, DIMS, dtype=torch.double).cuda())
    across = kernel(new, z)
    half = torch.linalg.solve_triangular(factor, across.t(), upper=False)
    posterior = kernel(new, new) - half.t() @ half
    draws = across @ weights + torch.linalg.cholesky(posterior + 1e-2 * torch.eye(2000, dtype=torch.double, device="cuda")) @ torch.randn(2000, 64, dtype=torch.double, device="cuda")
    print("spread", draws.std().item(), flush=True)

sparse = Kernel(DIMS).cuda()
places = nn.Parameter(torch.randn(OUTPUTS, INDUCING, DIMS, device="cuda"))
means = nn.Parameter(torch.zeros(OUTPUTS, INDUCING, 1, device="cuda"))
roots = nn.Parameter(torch.eye(INDUCING, device="cuda").repeat(OUTPUTS, 1, 1))
optimizer = torch.optim.Adam([*sparse.parameters(), places, means, roots], 0.01)
for _ in range(3):
    x, y = torch.randn(8192, DIMS).cuda(), torch.randn(OUTPUTS, 8192, 1).cuda()
    optimizer.zero_grad()
    among = sparse(places, places) + 1e-3 * torch.eye(INDUCING, device="cuda")
    factor = torch.linalg.cholesky(among)
    half = torch.linalg.solve_triangular(factor, sparse(places, x.expand(OUTPUTS, -1, -1)), upper=False)
    mean = half.mT @ means
    variance = 1 - half.square().sum(1) + (half.mT @ roots.tril()).square().sum(2)
    divergence = 0.5 * (roots.tril().square().sum() + means.square().sum()) - torch.linalg.slogdet(roots.tril() @ roots.tril().mT + 1e-4 * torch.eye(INDUCING, device="cuda"))[1].sum() / 2
    loss = ((y - mean).square() + variance[..., None]).mean() * 100 + divergence / 8192
    loss.backward()
    optimizer.step()
    print("bound", loss.item(), flush=True)
