"""`peaksight run` as a person types it: GIVEN a script, WHEN it is run, THEN a report and an exit code."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from peaksight.records import Category
from peaksight.units import MIB

pytestmark = pytest.mark.torch

MLP = Path(__file__).parents[1] / "scripts" / "mlp.py"
SMALL = ("--batch", "8", "--width", "64")


def test_a_job_that_fits(peaksight, tmp_path):
    """GIVEN a small job, THEN exit 0, the report on stdout after the script's prints, and no file written."""
    done = peaksight("run", "--gpu", "t4", MLP, *SMALL)

    assert done.returncode == 0, done.stderr
    assert "Fits a Tesla T4: predicted peak" in done.stdout
    assert "mlp.py:" in done.stdout
    assert "checkpoint.pt" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_does_not_fit(peaksight):
    """GIVEN a job of a GiB on a card of one, THEN exit 1 and the failing line."""
    done = peaksight("run", "--gpu", "t4", "--memory", "1GiB", MLP, "--width", "8192", "--batch", "8")

    assert done.returncode == 1, done.stderr
    assert "Does not fit: needs" in done.stdout
    assert "fails at mlp.py:" in " ".join(done.stdout.split())
    assert "torch.OutOfMemoryError: CUDA out of memory." in done.stderr


def test_everything_after_the_script_is_the_scripts(peaksight):
    """GIVEN arguments that look like ours, THEN the script gets them, `--` included."""
    done = peaksight("run", "python", "-u", MLP, *SMALL, "--", "--gpu", "none", "--", "-m")

    assert done.returncode == 0, done.stderr
    assert "arguments: --gpu none" in done.stdout


def test_json_alone_on_stdout(peaksight):
    """WHEN the JSON goes to stdout, THEN the script's prints are on stderr and stdout is one document."""
    done = peaksight("run", "--json", "-", "--steps", "2", MLP, *SMALL)
    report = json.loads(done.stdout)

    assert "arguments:" in done.stderr
    assert report["schema"] == "peaksight.report/1"
    assert report["fits"] is True
    assert len(report["steps"]) == 2
    assert sum(row["bytes"] for row in report["live_at_peak"]) == report["peak"]["allocated_bytes"]


def test_almost_nothing_is_other(peaksight):
    """GIVEN a plain loop, THEN less than 1 % of its peak has no category."""
    rows = json.loads(peaksight("run", "--json", "-", MLP).stdout)["live_at_peak"]
    other = sum(row["bytes"] for row in rows if row["category"] == Category.OTHER)

    assert other < sum(row["bytes"] for row in rows) / 100


def test_a_json_file_is_not_overwritten_without_force(peaksight, tmp_path):
    """GIVEN an existing file, THEN exit 2 at once and the file as it was; with --force it is replaced."""
    file = tmp_path / "report.json"
    file.write_text("mine")
    refused = peaksight("run", "--json", "report.json", MLP, *SMALL)

    assert (refused.returncode, file.read_text()) == (2, "mine")
    assert "--force" in refused.stderr
    assert peaksight("run", "--force", "--json", "report.json", MLP, *SMALL).returncode == 0
    assert json.loads(file.read_text())["argv"] == [str(MLP), *SMALL]


def test_a_script_that_fails_gives_no_answer(peaksight):
    """GIVEN an exception in step 3, THEN its traceback without our frames, how far it got, and exit 2."""
    done = peaksight("run", MLP, *SMALL, "--fail-at", "3")

    assert done.returncode == 2
    assert "RuntimeError: the data ran out" in done.stderr
    assert "site-packages/peaksight" not in done.stderr
    assert "the script failed after 2 steps: no answer; predicted peak so far" in done.stderr.splitlines()[-1]


def test_progress_is_one_line_a_step(peaksight):
    """The numbers are called predicted."""
    lines = peaksight("run", "--steps", "2", MLP, *SMALL).stderr.splitlines()
    steps = [line for line in lines if line.startswith("peaksight: step")]

    assert len(steps) == 2
    assert "allocated" in steps[0]
    assert "predicted" in steps[0]


def test_a_module_is_run_as_python_would(tmp_path, peaksight):
    """GIVEN a package in the working directory, WHEN run with -m, THEN its module is the script."""
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    (tmp_path / "pkg" / "train.py").write_text("import torch\nx = torch.ones(1 << 20, device='cuda')\n")
    report = json.loads(peaksight("run", "--json", "-", "--steps", "0", "-m", "pkg.train", "--lr", "1").stdout)

    assert report["argv"] == ["-m", "pkg.train", "--lr", "1"]
    assert report["peak"]["allocated_bytes"] == 4 * MIB
    assert report["finished"] == "script"


def heed_interrupts():
    """Shells start background jobs, as CI may be one, with SIGINT ignored; a person's terminal does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupted_run_reports_what_it_saw(tmp_path):
    """WHEN a person presses Ctrl-C after a step, THEN the report so far and exit 2."""
    endless = tmp_path / "endless.py"
    waits = "optimizer.step(); __import__('time').sleep(60 if step == 2 else 0)"  # input() may swallow the signal
    endless.write_text(MLP.read_text().replace("optimizer.step()", waits))
    command = [sys.executable, "-m", "peaksight", "run", endless.name, *SMALL]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts
    )
    for line in running.stderr:
        if "step 2:" in line:
            break
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=600)

    assert running.returncode == 2
    assert "No answer for" in out
    assert "predicted peak so far" in err


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        (("--gpu", "t5", "train.py"), "unknown-gpu"),
        (("deepspeed", "train.py"), "launcher"),
        ((), "nothing-to-run"),
        (("absent.py",), "cannot-run-script"),
    ],
)
def test_no_answer_is_one_sentence_with_a_slug(peaksight, words, slug):
    """Exit 2, one line on stderr, nothing on stdout."""
    done = peaksight("run", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("peaksight: ")
    assert done.stderr.endswith(f"docs/messages.md#{slug}.\n")
    assert len(done.stderr.splitlines()) == 1


def test_the_library_returns_the_report(tmp_path, monkeypatch):
    """`peaksight.run` is the command line with an object at the end."""
    import peaksight

    monkeypatch.chdir(tmp_path)
    report = peaksight.run(str(MLP), *SMALL, gpu="t4", steps=2)

    assert report.gpu.name == "Tesla T4"
    assert report.peak.allocated_bytes == sum(holder.bytes for holder in report.live_at_peak)


def test_an_operator_that_fails_ends_the_traceback(peaksight, tmp_path):
    """GIVEN shapes that do not match, THEN the traceback ends in the script, not on the way to a fake kernel."""
    script = tmp_path / "shapes.py"
    script.write_text('import torch\na = torch.randn(3, 4, device="cuda")\na @ a\n')
    done = peaksight("run", script)

    assert done.returncode == 2
    assert "_subclasses" not in done.stderr
    assert done.stderr.splitlines()[-2].startswith("RuntimeError")


def test_annotations_for_github(peaksight, tmp_path):
    """The answer at its line, the page folded; beside JSON on stdout the annotations are on stderr."""
    done = peaksight("run", "--gpu", "t4", "--steps", "2", "--format", "github", MLP, *SMALL)
    lines = done.stdout.splitlines()

    assert "::notice file=" in done.stdout
    assert lines.index("::group::peaksight") < lines.index("::endgroup::")
    assert done.returncode == 0
