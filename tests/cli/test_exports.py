"""`--format` for other tools: GIVEN a saved run, THEN files that those tools take, and nothing where they cannot go."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import capture_of
from peaksight.cli.exports import EXPORTS, Run, check_output
from peaksight.cli.output import STDOUT
from peaksight.errors import UsageError
from peaksight.gpus import find_card, room_on

SAVED = Path(__file__).parents[1] / "data" / "captures" / "version-1.capture"


def test_memory_viz_is_read_back(peaksight, tmp_path):
    """WHEN `read` is given the snapshot of a run that fails, THEN it fails there as it did in the run."""
    written = peaksight("report", SAVED, "--format", "memory_viz", "--output", "run.pickle", "--json", "run.json")
    read = peaksight("read", "run.pickle", "--json", "read.json")
    run, back = (load(tmp_path / name) for name in ("run.json", "read.json"))

    assert (0, 0) == (written.returncode, read.returncode)
    assert written.stdout.startswith("Does not fit")
    for name in ("requested_bytes", "allocated_bytes", "reserved_bytes", "at", "phase", "step"):
        assert run["oom"][name] == back["oom"][name], name


@pytest.mark.torch
def test_memory_viz_is_what_torch_takes(peaksight, tmp_path):
    """WHEN torch's own tool shows the snapshot, THEN its accounts add up and its events are there."""
    peaksight("report", SAVED, "--format", "memory_viz", "--output", "run.pickle")
    from torch.cuda import _memory_viz

    snapshot = pickle.loads((tmp_path / "run.pickle").read_bytes())
    reserved = sum(segment["total_size"] for segment in snapshot["segments"])

    assert f"total_reserved: {_memory_viz.Bytes(reserved)}" in _memory_viz.segsum(snapshot)
    assert "raise OutOfMemoryError" in _memory_viz.trace(snapshot)
    assert "category:0:parameter" in _memory_viz.memory(snapshot, format_flamegraph=str)
    assert "category:0:parameter" in _memory_viz.segments(snapshot, format_flamegraph=str)
    for plot in (_memory_viz.trace_plot, _memory_viz.segment_plot):
        assert "snapshot.pickle" in plot(snapshot)


def test_a_file_on_stdout_is_alone_there(peaksight, tmp_path):
    """WHEN it goes to stdout, THEN it is the same as in a file."""
    peaksight("report", SAVED, "--format", "memory_viz", "-o", "run.pickle")
    command = [sys.executable, "-m", "peaksight", "report", str(SAVED), "--format", "memory_viz", "-o", "-"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)

    assert (tmp_path / "run.pickle").read_bytes() == done.stdout


@pytest.mark.parametrize(("name", "key"), [("speedscope", "profiles"), ("perfetto", "traceEvents"), ("sarif", "runs")])
def test_files_of_json(peaksight, name, key):
    """WHEN one is asked for on stdout, THEN it is all there is, and is of the failure as well."""
    done = peaksight("report", SAVED, "--format", name, "--output", "-")

    assert 0 == done.returncode
    assert json.loads(done.stdout)[key]
    assert "out of memory" in done.stdout.replace("-", " ")


def test_markdown_is_printed_where_nothing_else_is_said(peaksight, tmp_path):
    """Or written, and then the report is printed as always."""
    printed = peaksight("report", SAVED, "--format", "markdown")
    written = peaksight("report", SAVED, "--format", "markdown", "--output", "run.md")

    assert printed.stdout.startswith("### peaksight: `mlp.py")
    assert (tmp_path / "run.md").read_text() == printed.stdout
    assert written.stdout.startswith("Does not fit")


def test_a_comparison_in_markdown(peaksight):
    """Of two saved runs; stdout is for one of both."""
    done = peaksight("compare", "--format", "markdown", SAVED, SAVED)
    refused = peaksight("compare", "--format", "markdown", "--json", "-", SAVED, SAVED)

    assert done.stdout.startswith("### peaksight compare\n\n**The predicted peaks of A and B are the same")
    assert (2, "") == (refused.returncode, refused.stdout)
    assert "#no-output" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "memory_viz"),
        ("--output", "run.txt"),
        ("--format", "github", "--output", "run.txt"),
        ("--format", "memory_viz", "--output", "-", "--json", "-"),
        ("--format", "markdown", "--json", "-"),
    ],
    ids=" ".join,
)
def test_nothing_where_a_file_cannot_go(peaksight, tmp_path, words):
    """GIVEN no place for a format, or no format for a place, THEN exit 2, and one line that says what to do."""
    done = peaksight("report", SAVED, *words)

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.endswith("docs/messages.md#no-output.\n")
    assert [] == list(tmp_path.iterdir())


def test_a_file_is_not_overwritten(peaksight, tmp_path):
    """Without --force."""
    (tmp_path / "run.pickle").write_text("mine")
    words = ("report", SAVED, "--format", "memory_viz", "--output", "run.pickle")

    assert "#file-exists" in peaksight(*words).stderr
    assert "mine" == (tmp_path / "run.pickle").read_text()
    assert 0 == peaksight(*words, "--force").returncode
    assert b"\x80\x04" == (tmp_path / "run.pickle").read_bytes()[:2]


def test_what_is_no_text_does_not_go_to_a_terminal(monkeypatch):
    """WHEN stdout is one, THEN it is refused."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(UsageError, match="terminal"):
        check_output("memory_viz", STDOUT)


def test_no_memory_viz_of_a_run_under_jax():
    """It has another allocator."""
    run = Run(None, [capture_of(pool_bytes=1)], room_on(find_card("t4")))
    with pytest.raises(UsageError, match="under JAX"):
        EXPORTS["memory_viz"](run)


@pytest.mark.torch
def test_what_a_script_prints_is_not_in_the_file(peaksight, tmp_path):
    """WHEN `run` writes to stdout, THEN the prints of the script are on stderr, and the answer is the exit code."""
    (tmp_path / "train.py").write_text("import torch\nprint('mine')\nkept = torch.ones(1 << 30, device='cuda')\n")
    words = ("--gpu", "t4", "--memory", "2GiB", "--steps", "0", "--format", "speedscope", "--output", "-")
    done = peaksight("run", *words, "train.py")

    assert 1 == done.returncode
    assert "mine" in done.stderr
    assert "needs 4.00 GiB" in json.loads(done.stdout)["name"]


def load(path):
    return json.loads(path.read_text())
