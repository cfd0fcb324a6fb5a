"""Trains with DDP or FSDP2 until rank 1 alone asks for more than its card has: `torchrun ... oom_on_rank_1.py`.

On a machine without cards it trains with gloo, and rank 1 raises what a card would.
"""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fsdp", action="store_true")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--fail-at", type=int, default=5)
    parser.add_argument("--timeout", type=int, default=20)
    args = parser.parse_args()
    on_card = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_card else "gloo", timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_card else torch.device("cpu")
    if on_card:
        torch.cuda.set_device(device)
    model = nn.Sequential(*(Block(args.width) for _ in range(args.layers))).to(device)
    model = fully_shard(model) if args.fsdp and on_card else DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1, args.fail_at + 3):
        batch = args.batch
        if rank == 1 and step == args.fail_at:
            if not on_card:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 64.00 GiB.")
            batch = torch.cuda.mem_get_info()[1] // (4 * 4 * args.width)  # one activation is as large as the card
        loss = model(torch.randn(batch, args.width, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"rank {rank} step {step} loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
