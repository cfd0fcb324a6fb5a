"""What NCCL holds beside the allocator after each kind of use: `torchrun --nproc-per-node N communicators.py`."""

import json
import os

import torch
import torch.distributed as dist


def used_bytes() -> int:
    """What all processes hold of this rank's card: only this one runs there."""
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def main() -> None:
    """Print the bytes outside the allocator after each use, on every rank."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    tensor = torch.ones(size << 20, device="cuda")
    other = tensor.clone()
    part = torch.empty(1 << 20, device="cuda")
    (tensor @ tensor).item()
    outside = {"before": used_bytes()}
    dist.init_process_group("nccl")
    outside["group made"] = used_bytes()
    ring = [dist.P2POp(dist.isend, part, (rank + 1) % size), dist.P2POp(dist.irecv, part.clone(), (rank - 1) % size)]
    uses = {
        "all_reduce": lambda group=None: dist.all_reduce(tensor, group=group),
        "all_gather": lambda group=None: dist.all_gather_into_tensor(tensor, part, group=group),
        "reduce_scatter": lambda group=None: dist.reduce_scatter_tensor(part, tensor, group=group),
        "broadcast": lambda group=None: dist.broadcast(tensor, 0, group=group),
        "all_to_all": lambda group=None: dist.all_to_all_single(other, tensor, group=group),
        "send and receive": lambda: [work.wait() for work in dist.batch_isend_irecv(ring)],
    }
    for name, use in uses.items():
        use()
        outside[name] = used_bytes()
    for number in range(2):
        group = dist.new_group()
        uses["all_reduce"](group)
        outside[f"group {number + 2}: all_reduce"] = used_bytes()
        uses["all_gather"](group)
        outside[f"group {number + 2}: all_gather"] = used_bytes()
    print("COMMUNICATORS", json.dumps({"rank": rank, "size": size, "outside": outside}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
