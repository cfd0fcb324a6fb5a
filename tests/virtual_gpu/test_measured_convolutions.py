"""Convolutions against an H200: the cases of benchmarks/operators, by their peaks."""

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.models]
pytest.importorskip("expecttest")

# Which kernel runs is cuDNN's choice, so that not every case can be right: the part whose peaks come within 1 MiB.
FAMILIES = {"layer convolutions": 0.75, "layer network_convolutions": 0.7}
CLOSE_BYTES = 1 << 20


@pytest.mark.parametrize("family", FAMILIES)
def test_peaks_come_close(family):
    """Forward and backward of every kind, type and layout."""
    from benchmarks.operators.__main__ import MEASURED
    from benchmarks.operators.comparison import compare
    from benchmarks.operators.recording import peak

    off = {}
    for difference in compare(MEASURED, family):
        assert not difference.error, difference
        pairs = [(real, virtual) for real, virtual in difference.events.values() if real is not None]
        off[difference.signature] = max(abs(peak(virtual) - peak(real)) for real, virtual in pairs)
    far = {signature: num_bytes for signature, num_bytes in off.items() if num_bytes > CLOSE_BYTES}
    assert len(off) > 10
    assert 1 - len(far) / len(off) >= FAMILIES[family], far
