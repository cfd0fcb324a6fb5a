"""Blocks that other streams use: what is allocated, active and reserved. `torchrun --nproc-per-node 2 cases.py`.

One JSON line a case and rank. Prefetchers make each batch on a stream of their own and record that of the training;
activations are copied to the host on a stream that they record. How long the host is ahead differs.
"""

import gc
import itertools
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet50

STEPS = 24
PICTURES = 96, 3, 224, 224
WORDS, WIDTH, DEPTH = 8192, 4096, 12

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
side = torch.cuda.Stream()


def prefetched(batches):
    """Each of `batches` on the card, in float, made while the one before is trained on."""
    following = None
    for batch in itertools.chain(batches, [None]):
        torch.cuda.current_stream().wait_stream(side)
        current = following
        if current is not None:
            current.record_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            following = None if batch is None else batch.cuda(non_blocking=True).float().div_(255)
        if current is not None:
            yield current


def offloaded(tensor):
    """A copy on the host, made on the side."""
    if not tensor.is_cuda or isinstance(tensor, nn.Parameter) or tensor.dim() != 2 or tensor.shape[0] != WORDS:
        return tensor
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        copy.copy_(tensor, non_blocking=True)
    tensor.record_stream(side)
    return copy


def brought_back(saved):
    """On the card again, on the stream of the training."""
    if saved.is_cuda:
        return saved
    torch.cuda.current_stream().wait_stream(side)
    return saved.cuda(non_blocking=True)


def pictures():
    """ResNet-50 on batches in page-locked memory."""
    model = DistributedDataParallel(resnet50().cuda(), device_ids=[torch.cuda.current_device()])
    stored = [torch.zeros(PICTURES, dtype=torch.uint8).pin_memory() for _ in range(3)]
    batches = itertools.islice(itertools.cycle(stored), STEPS)
    return model, prefetched(batches), lambda x: model(x).float().logsumexp(1).mean()


def offloading():
    """Linear layers whose activations go to the host."""
    layers = (nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(DEPTH))
    model = DistributedDataParallel(nn.Sequential(*layers).cuda().bfloat16())

    def loss_of(x):
        with torch.autograd.graph.saved_tensors_hooks(offloaded, brought_back):
            return model(x).float().square().mean()

    made = (torch.randn(WORDS, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(STEPS))
    return model, made, loss_of


def run(begin, read_every):
    """Train, reading the loss in every so many steps; what is there after each step, and the peaks."""
    model, batches, loss_of = begin()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    held = []
    for step, batch in enumerate(batches, 1):
        loss = loss_of(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        stats = torch.cuda.memory_stats()
        held.append([stats[f"{kind}_bytes.all.current"] for kind in ("allocated", "active", "reserved")])
        if read_every and step % read_every == 0:
            loss.item()
    stats = torch.cuda.memory_stats()
    return {"held": held, "peaks": [stats[f"{kind}_bytes.all.peak"] for kind in ("allocated", "active", "reserved")]}


CASES = {
    "prefetch, read every step": (pictures, 1),
    "prefetch, read every 8 steps": (pictures, 8),
    "prefetch, never read": (pictures, 0),
    "offload, read every step": (offloading, 1),
    "offload, never read": (offloading, 0),
}

for name, case in CASES.items():
    result = run(*case)
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    print(json.dumps({"case": name, "rank": rank, "torch": torch.__version__} | result), flush=True)
    dist.barrier()
dist.destroy_process_group()
