"""Trains with DDP on one card as two ranks (gloo), and prints the peaks that torch itself has counted in each step.

torchrun --nproc-per-node 2 -m peaksight watch benchmarks/watch/two_ranks.py [--full]
"""

import argparse
import json
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    """Ten steps with batches of many sizes; with `--full`, rank 1 asks for more than the card has in the last one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--full", action="store_true")
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, device = dist.get_rank(), torch.device("cuda", 0)
    torch.cuda.set_device(device)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(8))).to(device)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    peaks = []
    for step in range(1, 11):
        batch = 1024 * (1 + (step * 7 + rank) % 5)
        if args.full and rank == 1 and step == 10:
            batch = torch.cuda.mem_get_info()[1] // (4 * 2048)
        loss = model(torch.randn(batch, 2048, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        peaks.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        optimizer.zero_grad()
    print(json.dumps({"rank": rank, "peaks": peaks}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
