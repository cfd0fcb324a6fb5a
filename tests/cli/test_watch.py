"""`peaksight watch`, as a command: the script runs as it would without it."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers_page_numbers import json_of_page
from peaksight.records.plan import Expectation, Plan
from peaksight.records.plan_file import write_plan
from peaksight.records.watched_file import read_watched
from schemas import validated

pytestmark = pytest.mark.torch

ENDINGS = """
import os
import signal
import sys

print("begins", __name__, sys.argv, sys.path[0], __file__)
if sys.argv[1] == "fails":
    raise ValueError("mine")
if sys.argv[1] == "exits":
    sys.exit("a message")
if sys.argv[1] == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "is interrupted":
    signal.raise_signal(signal.SIGINT)
"""

SCRIPT = """
import os
import signal
import sys

import torch

print("begins", __name__, sys.argv)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if sys.argv[1] == "fails":
    raise ValueError("mine")
if sys.argv[1] == "is killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def watch(tmp_path):
    """Watches `SCRIPT` in an empty directory."""
    (tmp_path / "train.py").write_text(SCRIPT)

    def run(*words, before=("-m", "peaksight", "watch")):
        return subprocess.run(
            [sys.executable, *before, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )

    return run


def watched_in(directory):
    return [read_watched(path) for path in sorted(directory.rglob("*.jsonl"))]


@pytest.mark.parametrize("ending", ["ends", "fails", "exits", "is killed", "is interrupted"])
def test_it_ends_as_without(watch, tmp_path, ending):
    """The same exit code, prints and traceback."""
    (tmp_path / "endings.py").write_text(ENDINGS)
    alone = watch("endings.py", ending, before=())
    done = watch("--directory", "seen", "endings.py", ending)
    (watched,) = watched_in(tmp_path / "seen")

    assert (done.returncode, done.stdout, done.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert (watched.end is None) == (ending == "is killed")


def test_a_process_that_is_killed(watch, tmp_path):
    """Leaves every step that it has done."""
    done = watch("--directory", "seen", "train.py", "is killed")
    (watched,) = watched_in(tmp_path / "seen")

    assert done.returncode == -signal.SIGKILL
    assert [step.step for step in watched.steps] == [1, 2, 3, 4]
    assert watched.end is None


def test_where_it_is_written(watch, tmp_path):
    """Each run has a folder of its own; a directory that cannot be written does not stop the script."""
    (tmp_path / "file").write_text("")
    assert watch("train.py", "ends").returncode == 0
    done = watch("--directory", "file/below", "-m", "train", "ends")

    assert len(list((tmp_path / "peaksight-watch").iterdir())) == 1
    assert (done.returncode, done.stdout.splitlines()[0][:15]) == (0, "begins __main__")
    assert "Can't write" in done.stderr
    assert "the script runs without it" in done.stderr


def test_a_launcher_in_front_of_the_script(watch):
    """Is told where to put the words."""
    done = watch("torchrun", "--nproc-per-node", "2", "train.py")

    assert done.returncode == 2
    assert "-m peaksight watch train.py" in done.stderr


def test_two_ranks(watch, tmp_path):
    """Under torchrun, with the exit code of the launcher: one directory, a file each."""
    done = watch("train.py", "fails", before=("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                                                    "-m", "peaksight", "watch"))  # fmt: skip
    seen = watched_in(tmp_path / "peaksight-watch")

    assert done.returncode == 1
    assert len({watched.process.run for watched in seen}) == 1
    assert len(list((tmp_path / "peaksight-watch").iterdir())) == 1
    assert [watched.process.rank for watched in seen] == [0, 1]
    assert any(watched.end and watched.end.error == "ValueError: mine" for watched in seen)


def test_a_plan_and_a_scalar(watch, tmp_path):
    """GIVEN a plan, THEN each thing that it expects is told at the end: on a CPU no peak was seen."""
    expected = Expectation(peak_allocated_bytes=(1, 2), peak_reserved_bytes=(1, 2), trainable=20, micro_batches=1)
    write_plan(tmp_path / "plan.json", Plan(argv=("train.py",), sources="", peaksight="0", torch="2", gpu="t4",
                                            expected=expected))  # fmt: skip
    done = watch("--directory", "seen", "--plan", "plan.json", "--scalar", "loss", "train.py", "ends")
    (watched,) = watched_in(tmp_path / "seen")

    assert done.returncode == 0
    assert {check.name: check.holds for check in watched.expectations} == {
        "peak allocated": None,
        "peak reserved": None,
        "retries": None,
        "trained parameters": True,
        "passes a step": True,
    }
    assert "not seen: peak allocated: expected 1 B to 2 B, measured no steady step" in done.stderr
    assert "no scalar called 'loss'" in done.stderr


def test_what_is_not_installed(watch):
    """Is said before the script starts."""
    without = "import sys; sys.modules['mlflow'] = None; from peaksight.cli import main; sys.exit(main())"
    done = watch("watch", "--mlflow", "train.py", "ends", before=("-c", without))

    assert (done.returncode, done.stdout) == (2, "")
    assert "mlflow is not installed" in done.stderr


def test_the_page_of_a_run(watch, peaksight, tmp_path):
    """At the end, and of its records again; the JSON is in it."""
    done = watch("--directory", "seen", "--html", "watched.html", "train.py", "ends")
    again = peaksight("report", "seen", "--json", "again.json", "--html", "again.html")
    page, report = (tmp_path / "watched.html").read_text(), json.loads((tmp_path / "again.json").read_text())

    assert (done.returncode, again.returncode) == (0, 0)
    assert json.loads(json_of_page(page)) == validated(report)
    assert (tmp_path / "again.html").read_text() == page
    assert report["ranks"][0]["exit_code"] == 0
    assert again.stdout.startswith("The run peaked at ")


def test_a_run_without_records(peaksight, tmp_path):
    """A directory of something else, and a form that needs allocations."""
    (tmp_path / "empty").mkdir()
    nothing = peaksight("report", "empty")

    assert nothing.returncode == 2
    assert "messages.md#nothing-watched" in nothing.stderr


SPAWNS = Path(__file__).parents[1] / "scripts" / "watched" / "spawns_ranks.py"


@pytest.mark.slow
def test_ranks_that_the_script_spawns(watch, tmp_path):
    """Each leaves its record in the one directory, and the process that waits for them none."""
    done = watch("-q", "--directory", "seen", str(SPAWNS), "--fail")
    ranks = {watched.process.rank: watched for watched in map(read_watched, (tmp_path / "seen").glob("*.jsonl"))}

    assert done.returncode == 1
    assert "ProcessRaisedException" in done.stderr
    assert {0, 1} == set(ranks)
    assert [2, 2] == [ranks[rank].process.world_size for rank in (0, 1)]
    assert [3, 3] == [len(ranks[rank].steps) for rank in (0, 1)]
    assert ranks[1].end.exit_code == 1
    assert len(list((tmp_path / "seen").glob("rank1.*.capsule"))) == 1
