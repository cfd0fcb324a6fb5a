"""Scripts that run out of memory: GIVEN what a script does about it, THEN the answer says how that ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers_commands import peaksight
from peaksight.units import MIB

pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).parents[1] / "scripts" / "full_card.py"


# Of this card the script can use a GiB less what CUDA's libraries take.
RUN = ("run", "--gpu", "h100-80gb", "--memory", "1542MiB", "--json", "-", str(SCRIPT))


@pytest.fixture
def run(tmp_path):
    """Runs the script in an empty directory; returns its exit code, the report and what was said on stderr."""

    def run(*words, stdin=""):
        done = peaksight(*RUN, *words, cwd=tmp_path, stdin=stdin)
        return done.returncode, json.loads(done.stdout), done.stderr

    return run


def line_of(text):
    """Where the script says `text`."""
    number = next(i for i, line in enumerate(SCRIPT.read_text().splitlines(), start=1) if text in line)
    return f"{SCRIPT.name}:{number}"


FORWARD = line_of(".tanh()")


def test_a_script_that_gets_over_it_fits(run):
    """GIVEN smaller batches after it, THEN exit 0, and how often it was."""
    code, report, _ = run("halve")

    assert (code, report["fits"], report["finished"]) == (0, True, "steady")
    assert (report["caught_ooms"], report["retries"]) == (2, None)


def test_a_script_that_gives_advice_and_ends_does_not_fit(run):
    """GIVEN that the error was caught and nothing but words came after it, THEN it is that error."""
    code, report, said = run("advise", 1)

    assert "reduce the batch size" in said
    assert (code, report["fits"], report["caught_ooms"]) == (1, False, 0)
    assert (report["oom"]["at"], report["oom"]["requested_bytes"]) == (FORWARD, 480 * MIB)
    assert report["peak"]["allocated_bytes"] > 960 * MIB


def test_a_library_that_gets_nothing_of_a_full_card(run):
    """GIVEN blocks up to the limit, THEN the handle of cuBLAS fails, at the line of the product."""
    code, report, said = run("multiply")

    assert "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED" in said
    assert (code, report["caught_ooms"]) == (1, 1)
    assert report["oom"]["at"] == line_of("matrix @ matrix")


def test_what_a_script_does_beside_happens_twice_unseen(run, tmp_path):
    """GIVEN a fork, prints, a line of stdin and a file, in a folder with a person's torch.py and pickle.py.

    THEN the second run gets beyond the first, imports none of these and prints nothing.
    """
    for name in ("torch", "pickle", "click", "subprocess"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not this one')")
    before = set(tmp_path.iterdir())
    code, report, said = run("touch", stdin="typed\n")

    assert (code, report["oom"]["at"], report["finished"]) == (1, FORWARD, "steady")
    assert said.count("a line is read: typed") == said.count("a line is read:") == 1
    assert [write["path"] for write in report["writes"]] == ["notes.txt"]
    assert set(tmp_path.iterdir()) == before


def test_a_script_that_reads_its_size(run):
    """GIVEN a person's answer, which the second run does not get, THEN what the first one saw is reported, and why."""
    code, report, said = run("ask", stdin="15\n")

    assert "EOFError: EOF when reading a line" in said
    assert (code, report["fits"], report["oom"]["at"]) == (1, False, FORWARD)
    assert report["peak"]["allocated_bytes"] > 480 * MIB


def heed_interrupts():
    """Shells start background jobs, as CI may be one, with SIGINT ignored; a person's terminal does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_in_the_second_run(tmp_path):
    """WHEN a person has waited for long enough, THEN the failure, and at least how much it needs."""
    running = subprocess.Popen(
        [sys.executable, "-m", "peaksight", *RUN, "linger"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_interrupts,
    )  # fmt: skip
    for line in running.stderr:
        if "step 1:" in line:
            break
    os.killpg(running.pid, signal.SIGINT)
    report = json.loads(running.communicate(timeout=600)[0])

    assert (running.returncode, report["oom"]["at"], report["finished"]) == (1, FORWARD, "interrupted")
    assert report["peak"]["allocated_bytes"] > 960 * MIB
