"""`peaksight replay`."""

import json

from click.testing import CliRunner

from peaksight.cli import main, peaksight
from peaksight.units import MIB

TRACE = [
    ["segment_alloc", 0, 20 * MIB, 0],
    ["alloc", 0, 4 * MIB, 0],
    ["alloc", 4 * MIB, 8 * MIB, 0],
    ["free_requested", 0, 4 * MIB, 0],
    ["free_completed", 0, 4 * MIB, 0],
]


def test_the_peaks_of_a_trace(tmp_path):
    """Two blocks in one segment of 20 MiB."""
    trace = tmp_path / "run.trace.json"
    trace.write_text(json.dumps(TRACE))
    result = json.loads(CliRunner().invoke(peaksight, ["replay", str(trace)]).output)

    assert (result["peak_allocated"], result["peak_reserved"], result["segments"]) == (12 * MIB, 20 * MIB, 1)


def test_a_file_that_is_no_trace(tmp_path, capsys):
    """One sentence and exit 2."""
    file = tmp_path / "run.trace.json"
    file.write_text("{}")

    assert main(["replay", str(file)]) == 2
    assert "#bad-trace" in capsys.readouterr().err
