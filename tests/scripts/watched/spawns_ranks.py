"""Spawns two ranks that train with gloo; with `--fail` rank 1 then raises what cuBLAS does without memory."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(rank, world_size, address, fails):
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=world_size)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.barrier()
    if fails and rank == 1:
        raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    dist.destroy_process_group()


if __name__ == "__main__":
    address = f"file://{os.path.abspath('meeting')}"
    mp.spawn(train, args=(2, address, "--fail" in sys.argv), nprocs=2)
    print("all ranks are through")
