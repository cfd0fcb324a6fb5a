"""What an H100 recorded: peaks and sizes of blocks from addresses alone."""

import gzip
import json
from pathlib import Path

import pytest

from .snapshot_builder import recording_of

TRUTH = Path(__file__).parents[3] / "benchmarks" / "truth"


@pytest.mark.parametrize("workload", ["lstm", "eigh", "unet3d", "bert-frozen", "fasterrcnn"])
def test_peaks_of_a_card(workload, tmp_path):
    """Allocated, reserved, requested and active bytes, as `torch.cuda.memory_stats()` counted them."""
    events = json.loads(gzip.decompress((TRUTH / "traces" / f"{workload}.trace.json.gz").read_bytes()))
    keys = ("action", "addr", "size", "stream")
    trace = [dict(zip(keys, event, strict=True)) for event in events]
    measured = json.loads((TRUTH / "measured" / f"{workload}.json").read_text())
    capture = recording_of({"segments": [], "device_traces": [trace]}, tmp_path).capture

    assert {
        "peak_allocated": capture.peak_allocated_bytes,
        "peak_reserved": capture.peak_reserved_bytes,
        "peak_requested": capture.peak_requested_bytes,
        "peak_active": capture.peak_active_bytes,
    }.items() <= measured.items()
