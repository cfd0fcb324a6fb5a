"""DDP of every kind, one after the other: peaks of each step. One JSON line a case and rank."""

import contextlib
import gc
import json
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

WIDTH, DEPTH, BATCH, STEPS = 1536, 10, 256, 4

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")


class Net(nn.Module):
    """Linear layers, a normalisation, and one that may be spare."""

    def __init__(self, norm=None, spare=False):
        """`norm` is its class."""
        super().__init__()
        self.head = nn.Linear(64, WIDTH)
        self.body = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.norm = norm(WIDTH) if norm else nn.Identity()
        self.spare = nn.Linear(WIDTH, WIDTH) if spare else None

    def forward(self, x):
        """The loss."""
        x = self.head(x)
        for layer in self.body:
            x = torch.relu(layer(x))
        return self.norm(x).float().square().mean()


def fp16(net):
    """Gradients travel in float16."""
    net.register_comm_hook(None, default_hooks.fp16_compress_hook)


def bf16(net):
    """Gradients travel in bfloat16."""
    net.register_comm_hook(None, default_hooks.bf16_compress_hook)


def power(net):
    """Gradients travel as matrices of rank 4."""
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def allreduce(net):
    """As without a hook."""
    net.register_comm_hook(None, default_hooks.allreduce_hook)


CASES = {
    "plain": {},
    "view": {"ddp": {"gradient_as_bucket_view": True}},
    "cap1": {"ddp": {"bucket_cap_mb": 1}},
    "cap100-view": {"ddp": {"bucket_cap_mb": 100, "gradient_as_bucket_view": True}},
    "static": {"ddp": {"static_graph": True}},
    "static-view": {"ddp": {"static_graph": True, "gradient_as_bucket_view": True}},
    "unused": {"ddp": {"find_unused_parameters": True}, "spare": True},
    "unused-view": {"ddp": {"find_unused_parameters": True, "gradient_as_bucket_view": True}, "spare": True},
    "no_sync": {"accumulate": 3},
    "no_sync-view": {"accumulate": 3, "ddp": {"gradient_as_bucket_view": True}},
    "zeroed": {"set_to_none": False},
    "zeroed-view": {"set_to_none": False, "ddp": {"gradient_as_bucket_view": True}},
    "fp16-hook": {"hook": fp16},
    "fp16-hook-view": {"hook": fp16, "ddp": {"gradient_as_bucket_view": True}},
    "bf16-hook": {"hook": bf16},
    "power-sgd": {"hook": power},
    "allreduce-hook": {"hook": allreduce},
    "batch-norm": {"norm": nn.BatchNorm1d},
    "sync-batch-norm": {"norm": nn.BatchNorm1d, "sync": True},
    "autocast": {"autocast": True},
    "mixed": {"mixed": True},
}


def run(
    ddp=None, spare=False, accumulate=1, set_to_none=True, hook=None, norm=None, sync=False, autocast=False, mixed=False
):
    """The peaks above what was there before: of the construction and of each step."""
    torch.manual_seed(0)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    net = Net(norm, spare).cuda()
    if sync:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    options = dict(ddp or {})
    if mixed:
        from torch.nn.parallel.distributed import _MixedPrecision

        options["mixed_precision"] = _MixedPrecision(
            param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, buffer_dtype=torch.bfloat16
        )
    net = DistributedDataParallel(net, device_ids=[torch.cuda.current_device()], **options)
    if hook:
        hook(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    seen = [torch.cuda.max_memory_allocated() - before]
    for _ in range(STEPS):
        torch.cuda.synchronize()
        time.sleep(0.15)
        torch.cuda.reset_peak_memory_stats()
        for part in range(accumulate):
            last = part == accumulate - 1
            with contextlib.nullcontext() if last else net.no_sync():
                with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
                    loss = net(torch.randn(BATCH, 64, device="cuda"))
                loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        seen.append(torch.cuda.max_memory_allocated() - before)
    end = torch.cuda.memory_allocated() - before
    return {"before": before, "peaks": seen, "end": end, "reserved": torch.cuda.max_memory_reserved()}


for name, case in CASES.items():
    try:
        result = run(**case)
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    torch.cuda.synchronize()
    time.sleep(0.15)
    gc.collect()
    torch.cuda.empty_cache()
    print(json.dumps({"case": name, "rank": rank} | result), flush=True)
    dist.barrier()
dist.destroy_process_group()
