"""In a new process, how long the first gradients are reduced before the buckets are made anew: a line a rank.

NCCL gives the first buckets back if its watchdog, which looks every 0.1 s, has seen the end of their reduction by then.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

WIDTH, DEPTH, BATCH = 2048, 12, 8192

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
as_view, reads = "view" in sys.argv, "item" in sys.argv
looks = []


def rebuild(reducer):
    """Look at the clock."""
    looks.append(time.time())
    return real(reducer)


real, dist.Reducer._rebuild_buckets = dist.Reducer._rebuild_buckets, rebuild
layers = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(DEPTH))
model = DistributedDataParallel(nn.Sequential(*layers).cuda(), gradient_as_bucket_view=as_view)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
start, reduced = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
start.synchronize()
started = time.time()
peaks = []
for step in range(3):
    torch.cuda.reset_peak_memory_stats()
    loss = model(torch.randn(BATCH, WIDTH, device="cuda")).square().mean()
    in_forward = torch.cuda.memory_allocated()
    loss.backward()
    if step == 0:
        reduced.record()
    optimizer.step()
    optimizer.zero_grad()
    if reads:
        loss.item()
    peaks.append([in_forward, torch.cuda.max_memory_allocated()])
torch.cuda.synchronize()
seconds = looks[1] - (started + start.elapsed_time(reduced) / 1000)
line = {"view": as_view, "item": reads, "rank": rank, "seconds_between": seconds, "forward_and_peak": peaks}
print(json.dumps(line), flush=True)
dist.barrier()
dist.destroy_process_group()
