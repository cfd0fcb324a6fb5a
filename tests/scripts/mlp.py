"""A small training loop in plain PyTorch: prints its loss, saves a checkpoint at the end of each epoch."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--width", type=int, default=1024)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--fail-at", type=int)
parser.add_argument("rest", nargs="*")
args = parser.parse_args()
print("arguments:", *args.rest)

model = nn.Sequential(nn.Linear(args.width, 4 * args.width), nn.GELU(), nn.Linear(4 * args.width, args.width)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1, args.steps + 1):
    if step == args.fail_at:
        raise RuntimeError("the data ran out")
    x = torch.randn(args.batch, args.width, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
    torch.save({"step": step}, "checkpoint.pt")
