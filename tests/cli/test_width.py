"""What commands print fits the width of a terminal, and that of a log, where nobody says how wide it is."""

import io
import pickle
import re
import sys
from pathlib import Path

import pytest

from helpers_capsules import ended_by_memory, failure_of, process_of, steps_of, write_capsule, write_record
from helpers_commands import peaksight
from peaksight.cli import main
from peaksight.cli import peaksight as commands
from peaksight.records.watched import WatchedEvent

TESTS = Path(__file__).parents[1]
MLP, BLOCKS = TESTS / "scripts" / "mlp.py", TESTS / "scripts" / "plans" / "blocks.py"
CAPTURE = TESTS / "data" / "captures" / "version-1.capture"
LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 6 has a total capacity of 23.65 GiB "
    "of which 208.06 MiB is free. Process 2271801 has 23.44 GiB memory in use. Of the allocated memory 22.87 GiB is "
    "allocated by PyTorch, and 6.23 MiB is reserved by PyTorch but unallocated.\n"
)
EVENT = WatchedEvent(kind="growth", step=9, time=0.0, text="what is left after each step grows by 2.00 MiB, and more")
TRAIN = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for batch in torch.randn(2, 8, 8):
    loss = model(batch).square().mean() * (2 if "twice" in sys.argv else 1)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
WORDS = [
    *([name, "--help"] for name in commands.commands),
    ["--help"],
    ["gpus"],
    ["gpus", "--mig"],
    ["explain"],
    ["explain", "fixes"],
    ["explain", "logits-unsupervised"],
    ["read", "rank6.log"],
    ["read", "rank0.log", "rank6.log"],
    ["read", "snapshot.pickle"],
    ["read", "seen"],
    ["report", "--all", str(CAPTURE)],
    ["report", "watched"],
    ["compare", str(CAPTURE), str(CAPTURE)],
]


def too_wide(text, width):
    """Lines of `text` beyond `width`, but for those that one word fills, as a path does."""
    return [line for line in text.splitlines() if len(line) > width and len(line.split()) > 1]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with what is read."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "rank0.log").write_text("NCCL communicator was aborted on rank 0.\n")
    (folder / "rank6.log").write_text(LOG)
    (folder / "snapshot.pickle").write_bytes(pickle.dumps(snapshot()))
    write_capsule(folder / "seen", process_of(1), failure_of(), steps=steps_of(until=3), ending=ended_by_memory())
    write_record(folder / "watched", process_of(0), steps=steps_of(until=300), events=[EVENT])
    return folder


def snapshot():
    """A block is freed, and another one keeps its segment."""
    stack = [{"filename": "/home/me/project/training/loop.py", "line": 10, "name": "train"}]
    whole, half = {"size": 20 << 20, "frames": stack}, {"size": 10 << 20, "frames": stack}
    events = [
        {"action": "segment_alloc", "addr": 1 << 40, **whole},
        {"action": "alloc", "addr": 1 << 40, **half},
        {"action": "alloc", "addr": (1 << 40) + (10 << 20), **half},
        {"action": "free_requested", "addr": 1 << 40, **half},
        {"action": "free_completed", "addr": 1 << 40, **half},
        {"action": "oom", "device_free": 0, **whole},
    ]
    return {"segments": [], "device_traces": [events]}


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_a_line_is_not_wider_than_the_terminal(words, width, files, monkeypatch, capsys):
    """Of help, tables and sentences; in a log nothing is coloured, and no line ends with spaces."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(files)
    assert main(words) == 0
    printed = capsys.readouterr().out

    assert printed
    assert [] == too_wide(printed, width)
    assert "\x1b" not in printed
    assert [] == [line for line in printed.splitlines() if line.endswith(" ") and "--help" not in words]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """What the commands print that run a script, in a log: each with its exit code, stdout and stderr."""
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "train.py").write_text(TRAIN)

    def printed(*words):
        done = peaksight(*words, cwd=folder)
        return done.returncode, done.stdout, done.stderr

    return printed


@pytest.mark.torch
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["run", "--gpu", "t4", "--memory", "200MiB", "--all", MLP, "--batch", "32"], 1),
        (["compare", f"{MLP} --batch 32", f"{MLP} --batch 4096"], 0),
        (["fix", "--gpu", "t4", "--memory", "900MiB", "--candidates", "4", BLOCKS], 0),
        (["fix", "--gpu", "t4", "--memory", "900MiB", "--sweep", "batch=64,65536", MLP], 0),
        (["verify", "--against", "train.py", "train.py", "twice"], 1),
    ],
    ids=["run", "compare", "fix", "sweep", "verify"],
)
def test_a_log_of_80_columns(simulated, words, code):
    """The answer and how far its runs are; what the script itself prints is its own business."""
    ended, answer, said = simulated(*words)

    assert ended == code, said
    assert [] == too_wide(answer, 80)
    assert [] == too_wide("".join(re.findall(r"peaksight: (?:step|tried|running|A:|B:) .*\n", said)), 80)
    assert "peaksight: " in said
    assert "\x1b" not in answer + said


@pytest.mark.torch
def test_quiet(simulated):
    """The answer alone: nothing on stderr, and nothing that the script prints; what is wrong stays."""
    code, answer, said = simulated("run", "--quiet", "--gpu", "t4", MLP)
    failed, _, why = simulated("run", "-q", "--gpu", "t4", MLP, "--fail-at", "2")

    assert (code, said) == (0, "")
    assert answer.startswith("Fits a Tesla T4: ")
    assert failed == 2
    assert "RuntimeError: the data ran out" in why
    assert "the script failed after 1 step: no answer" in why
    assert "peaksight: step" not in why


def test_a_log_in_an_encoding_without_our_signs(files, monkeypatch):
    """Other signs stand in, none is lost."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(files)

    assert [main(words) for words in (["report", str(CAPTURE)], ["read", "snapshot.pickle"], ["explain", "workspaces"])]
    stream.flush()
    assert b"?" not in stream.buffer.getvalue().replace(b"torch ?", b"")
