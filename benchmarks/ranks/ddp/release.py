"""When DDP's first buckets go, with and without a pause between steps. One JSON line a case and rank."""

import gc
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CASES = [(view, pause, item) for view in (False, True) for pause in (0.0, 0.3) for item in (False, True)]
WIDTH, DEPTH, BATCH, STEPS = 2048, 12, 512, 4

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")


def model():
    """192 MiB of parameters."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(DEPTH))).cuda()


def run(view, pause, item):
    """What is allocated between the parts of each step, above what was there before."""
    before = torch.cuda.memory_allocated()
    net = DistributedDataParallel(model(), device_ids=[torch.cuda.current_device()], gradient_as_bucket_view=view)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    built, seen = torch.cuda.memory_allocated() - before, []
    for _ in range(STEPS):
        if pause:
            torch.cuda.synchronize()
            time.sleep(pause)
        torch.cuda.reset_peak_memory_stats()
        at = [torch.cuda.memory_allocated() - before]
        loss = net(torch.randn(BATCH, WIDTH, device="cuda")).square().mean()
        at.append(torch.cuda.memory_allocated() - before)
        loss.backward()
        at.append(torch.cuda.memory_allocated() - before)
        optimizer.step()
        at.append(torch.cuda.memory_allocated() - before)
        optimizer.zero_grad()
        at.append(torch.cuda.memory_allocated() - before)
        if item:
            loss.item()
        peaks = torch.cuda.max_memory_allocated() - before, torch.cuda.max_memory_reserved()
        seen.append({"start_forward_backward_optimizer_zero": at, "peak": peaks[0], "reserved": peaks[1]})
    return {"before": before, "built": built, "steps": seen}


for case in CASES:
    result = run(*case)
    torch.cuda.synchronize()
    time.sleep(0.3)
    gc.collect()
    line = {"view": case[0], "pause": case[1], "item": case[2], "rank": rank, "torch": torch.__version__}
    print(json.dumps(line | result | {"after": torch.cuda.memory_allocated()}), flush=True)
    dist.barrier()
dist.destroy_process_group()
