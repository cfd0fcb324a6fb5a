"""Train a small language model in one process or, under torchrun, in several: each rank has its part of the batch."""

import argparse
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.nn.functional import all_gather
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument(
    "--loss",
    default="rank-mean",
    choices=["rank-mean", "tokens", "tokens-not-scaled", "sum", "rank-0", "rank-0-scaled"],
)
parser.add_argument("--equal-lengths", action="store_true")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--sync", default="last", choices=["last", "each", "never"])
parser.add_argument("--call", default="wrapper", choices=["wrapper", "module"])
parser.add_argument("--experts", action="store_true", help="each half of the batch has its own, so a rank lacks one")
parser.add_argument("--find-unused", action="store_true")
parser.add_argument("--static-graph", action="store_true")
parser.add_argument("--same-data", action="store_true", help="every rank reads the first part, as without a sampler")
parser.add_argument("--fail-on-rank", type=int)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

VOCABULARY, LONGEST, BATCH, IGNORED = 40, 16, 8, -100


class Model(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(2 if args.experts else 1))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens, halves):
        """`halves` says of each sample to which half of the batch it belongs."""
        x = self.embedding(tokens)
        routes = halves % len(self.experts)
        for number in routes.unique().tolist():
            rows = (routes == number)[:, None, None]
            x = torch.where(rows, x + torch.tanh(self.experts[number](x)), x)
        return self.head(x)


def batches():
    """The whole batch of each step, the same on every rank: tokens, labels, halves."""
    data = torch.Generator().manual_seed(1)
    for _ in range(args.steps):
        tokens = torch.randint(VOCABULARY, (BATCH, LONGEST), generator=data)
        lengths = torch.randint(2, LONGEST + 1, (BATCH, 1), generator=data)
        lengths = LONGEST if args.equal_lengths else lengths
        yield tokens, torch.where(torch.arange(LONGEST) < lengths, tokens, IGNORED), torch.arange(BATCH) // (BATCH // 2)


def cross_entropy(logits, labels, reduction: str):
    logits, labels = logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
    return nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction=reduction)


def loss_of(logits, labels, tokens_of_window):
    """What this rank calls backward on."""
    if args.loss == "rank-mean":
        return cross_entropy(logits, labels, "mean") / args.accumulate
    if args.loss == "sum":
        return cross_entropy(logits, labels, "sum") / BATCH
    if args.loss.startswith("tokens"):
        scale = 1 if args.loss == "tokens-not-scaled" else world_size
        return cross_entropy(logits, labels, "sum") * scale / tokens_of_window
    everything = torch.cat(all_gather(logits)), torch.cat(gathered(labels))
    scale = world_size if args.loss == "rank-0-scaled" else 1
    return cross_entropy(*everything, "mean") * (scale if rank == 0 else 0)


def gathered(tensor):
    parts = [torch.empty_like(tensor) for _ in range(world_size)]
    dist.all_gather(parts, tensor)
    return parts


def tokens_on_all_ranks(parts):
    count = sum((labels[:, 1:] != IGNORED).sum() for _, labels, _ in parts)
    if world_size > 1:
        dist.all_reduce(count)
    return count


world_size, rank = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("RANK", 0))
torch.manual_seed(0)
model = wrapped = Model()
if world_size > 1:
    dist.init_process_group("gloo")
    wrapped = DistributedDataParallel(model, find_unused_parameters=args.find_unused, static_graph=args.static_graph)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
forward = model if args.call == "module" else wrapped
for step, batch in enumerate(batches()):
    if step == 1 and args.fail_on_rank == rank:
        raise RuntimeError("the disk is full")
    mine = [part.chunk(world_size)[0 if args.same_data else rank] for part in batch]
    parts = list(zip(*(part.chunk(args.accumulate) for part in mine), strict=True))
    tokens_of_window = tokens_on_all_ranks(parts)
    for number, (tokens, labels, halves) in enumerate(parts):
        is_last = number == len(parts) - 1
        waits = world_size > 1 and (args.sync == "never" or (args.sync == "last" and not is_last))
        with wrapped.no_sync() if waits else nullcontext():
            loss = loss_of(forward(tokens, halves), labels, tokens_of_window)
            loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "rank", rank, "loss", loss.item())
if world_size > 1:
    dist.destroy_process_group()
