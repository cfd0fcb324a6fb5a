"""An actor-critic whose gradients are averaged over processes as one vector."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
WIDTH = 4096
model = nn.Sequential(nn.Linear(64, WIDTH), nn.ELU(), nn.Linear(WIDTH, WIDTH), nn.ELU(), nn.Linear(WIDTH, 13)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)


def reduce_gradients():
    gradients = [parameter.grad for parameter in model.parameters()]
    if args.fixed:
        for gradient in gradients:
            dist.all_reduce(gradient)
        return
    if args.near_miss:
        gradients = [parameter.grad for parameter in model.parameters() if parameter.ndim == 1]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    offset = 0
    for gradient in gradients:
        gradient.copy_(flat[offset : offset + gradient.numel()].view_as(gradient))
        offset += gradient.numel()


for step in range(4):
    loss = model(torch.randn(256, 64, device="cuda")).square().mean()
    loss.backward()
    reduce_gradients()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
dist.destroy_process_group()
