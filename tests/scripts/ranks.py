"""A small distributed training; what one rank alone does is an argument."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--only", default="", choices=["", "evaluate", "reduce", "full"])
parser.add_argument("--rank", type=int, default=0)
arguments = parser.parse_args()

dist.init_process_group("nccl")
rank, device = dist.get_rank(), dist.get_node_local_rank()
torch.cuda.set_device(device)
model = nn.Sequential(nn.Linear(256, 4096), nn.ReLU(), nn.Linear(4096, 256)).cuda()
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x = torch.randn(64, 256, device="cuda")
    model(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if rank == arguments.rank and arguments.only == "evaluate":
        kept = torch.zeros(64, 1024, 1024, device="cuda")
        del kept
    if rank == arguments.rank and arguments.only == "reduce":
        dist.all_reduce(x)
    if rank == arguments.rank and arguments.only == "full":
        raise SystemExit(3)
dist.barrier()
dist.destroy_process_group()
