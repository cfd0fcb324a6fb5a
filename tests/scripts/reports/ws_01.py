"""Upscales masks with one transposed convolution, in half precision."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

upscale = nn.ConvTranspose2d(1, 1, kernel_size=1, stride=1).cuda().half()
optimizer = torch.optim.SGD(upscale.parameters(), lr=1e-3)
torch.backends.cudnn.enabled = not args.fixed

for step in range(4):
    masks = torch.randn(1024, 1, 1024, 1024, device="cuda", dtype=torch.half)
    loss = upscale(masks).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
