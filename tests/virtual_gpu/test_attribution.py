"""From a run of a small GPT to the rows of its report."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from peaksight.attribution import build_report, live_at_peak
from peaksight.errors import StopSimulation
from peaksight.gpus import find_card, room_on
from peaksight.records import Capture, Category, Versions
from peaksight.units import MIB

from .cards import h100

pytestmark = pytest.mark.torch

VOCABULARY, LENGTH, WIDTH, HEADS, DEPTH, BATCH = 512, 64, 64, 4, 2, 4
# Embeddings of tokens (tied to the head) and positions; 12 width^2 + 13 width a block; the last norm.
# Seven vectors a block and two of the last norm are half a block of the allocator too short.
NUM_PARAMETERS = (VOCABULARY + LENGTH) * WIDTH + DEPTH * (12 * WIDTH**2 + 13 * WIDTH) + 2 * WIDTH
PARAMETER_BYTES = 4 * NUM_PARAMETERS + 256 * (7 * DEPTH + 2)


class Block(nn.Module):
    """Pre-norm attention and feed-forward."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (t.view(rows, length, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = x + self.out(attended)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    """A language model whose head is tied to its embedding."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def train(*, autocast=False):
    """A training loop that goes on until it is stopped."""
    model = GPT().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    while True:
        ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH)).cuda()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            logits = model(ids)
            loss = F.cross_entropy(logits.view(-1, VOCABULARY), ids.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def capture_of_run(run):
    """The capture of `run()` on an H100, to its steady state."""
    with h100(max_steps=None) as gpu, pytest.raises(StopSimulation):
        run()
    ledger, peaks = gpu.ledger, gpu.ledger.peaks
    return Capture(
        argv=("train.py",),
        gpu="h100-80gb",
        versions=Versions(installed=torch.__version__, device_rules=gpu.rules.build),
        allocations=tuple(birth.record() for birth in ledger.births),
        steps=tuple(ledger.steps),
        peak_tick=peaks.tick,
        peak_allocated_bytes=peaks.allocated_bytes,
        peak_reserved_bytes=peaks.reserved_bytes,
        peak_requested_bytes=peaks.requested_bytes,
        peak_active_bytes=peaks.active_bytes,
        not_simulated=gpu.approximations.records(),
        writes=(),
        finished="steady",
        script_exit=0,
        seconds=1.0,
    )


@pytest.fixture(scope="module", params=[False, True], ids=["float32", "bfloat16"])
def capture(request):
    """One run to the steady state, with and without autocast."""
    return capture_of_run(lambda: train(autocast=request.param))


def bytes_by_category(capture):
    """The live set's bytes by category."""
    totals = Counter()
    for holder in live_at_peak(capture):
        totals[holder.category] += holder.bytes
    return totals


def test_rows_add_up_to_the_peak(capture):
    """The rows are the peak, to the byte."""
    assert capture.peak_allocated_bytes == sum(holder.bytes for holder in live_at_peak(capture))


def test_other_is_small(capture):
    """Less than one percent of the peak beside the workspaces is of no known kind."""
    totals = bytes_by_category(capture)

    assert totals[Category.OTHER] < (capture.peak_allocated_bytes - totals[Category.WORKSPACE]) / 100


def test_parameters_and_state(capture):
    """Parameters are counted once where they are tied, and have two moments; blocks are multiples of 512 bytes."""
    totals = bytes_by_category(capture)

    assert totals[Category.PARAMETER] == PARAMETER_BYTES
    assert totals[Category.OPTIMIZER_STATE] == 2 * PARAMETER_BYTES


def test_workspaces(capture):
    """cuBLAS holds 32 MiB for the forward and the backward thread, and cublasLt 1 MiB."""
    assert 65 * MIB == bytes_by_category(capture)[Category.WORKSPACE]


def test_inputs(capture):
    """A batch of 4 x 64 int64 tokens."""
    assert 4 * 64 * 8 == bytes_by_category(capture)[Category.INPUT]


def test_holders_name_modules_and_lines(capture):
    """What the model holds carries its module, and every row but workspaces the line that made it."""
    holders = live_at_peak(capture)

    assert {"GPT.tokens", "GPT.blocks.0.up"} <= {h.module for h in holders if h.category is Category.PARAMETER}
    assert not [h for h in holders if not h.source]


def test_report(capture):
    """The report is built of the capture: it fits, and its steps peak alike from the second on."""
    report = build_report(capture, room_on(find_card("h100-80gb")))

    assert report.fits
    assert report.steps[-1] == report.steps[-2]
    assert report.peak.allocated_bytes == capture.peak_allocated_bytes


@pytest.mark.parametrize(("autocast", "itemsize"), [(False, 4), (True, 2)])
def test_activations(autocast, itemsize):
    """Each block's feed-forward keeps 4 x 64 x 256 elements of its activation, half as wide under autocast."""
    run = capture_of_run(lambda: train(autocast=autocast))

    assert DEPTH * [BATCH * LENGTH * 4 * WIDTH * itemsize] == [
        allocation.requested_bytes
        for allocation in run.allocations
        if (allocation.step, allocation.op) == (2, "aten::gelu")
    ]
