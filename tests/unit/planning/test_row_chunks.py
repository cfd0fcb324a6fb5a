"""Rows in chunks: GIVEN what modules save THEN which of them are tried."""

from types import SimpleNamespace

import pytest

from peaksight.planning.fixes import row_chunks
from peaksight.records import CallFact, ModuleFact
from peaksight.records.findings import Effect
from peaksight.units import MIB
from tests.helpers import allocation_of

_BLOCKS = ["Net.stream.0", "Net.stream.1"]
_SCANS = [f"{block}.scan" for block in _BLOCKS]


def proposals(num_rows, *, drops=False, saved_by="MmBackward0"):
    """Of two blocks that each save 8 MiB for `num_rows` rows, in a batch of 8 samples."""
    about = {"saved_by": saved_by, "tensor": f"float32[{num_rows}, 64, 128]"}
    saved = [allocation_of(8 * MIB, born=1, module=f"{path}.project", **about) for path in _SCANS]
    if drops:
        mask = {"saved_by": "NativeDropoutBackward0", "tensor": f"bool[{num_rows}, 64, 128]"}
        saved += [allocation_of(MIB, born=2, module=f"{path}.dropout", **mask) for path in _BLOCKS]
    held = {}
    for each in saved:
        held[each.module] = held.get(each.module, 0) + each.allocated_bytes
    modules = [ModuleFact(module=f"{path}.project", parameter_bytes=1, frozen_bytes=0) for path in _SCANS]
    call = CallFact(step=1, module="Net", training=True, recorded=True, first_tick=1, last_tick=2, rows=8)
    capture = SimpleNamespace(passes=[call], modules=modules, checkpoints=(), peak_allocated_bytes=20 * MIB)
    return list(row_chunks.FIX.propose(SimpleNamespace(saved=saved, saved_by_module=held, capture=capture)))


def test_blocks_with_more_rows_than_samples():
    """Each block as a whole where nothing in it draws random numbers."""
    found = proposals(1368)

    assert [each.changes[0].parameters for each in found] == [
        {"modules": _BLOCKS, "chunks": 4},
        {"modules": _BLOCKS, "chunks": 16},
    ]
    assert {each.effect for each in found} == {Effect.ROUNDING}


def test_what_drops_nothing_in_blocks_with_dropout():
    """The modules in them beside the dropout; blocks as a whole are of another class."""
    found = proposals(1368, drops=True)

    assert [(each.effect, each.changes[0].parameters["modules"]) for each in found] == [
        (Effect.ROUNDING, _SCANS),
        (Effect.ROUNDING, _SCANS),
        (Effect.NOISE, _BLOCKS),
        (Effect.NOISE, _BLOCKS),
    ]


@pytest.mark.parametrize("about", [{"num_rows": 8}, {"num_rows": 1368, "saved_by": "NativeBatchNormBackward0"}])
def test_no_chunks(about):
    """Rows are the samples of the batch, which accumulation takes in parts; or statistics are of all of them."""
    assert proposals(**about) == []
