"""`peaksight report`: GIVEN a saved run, THEN its report again, without the script and without torch."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import allocation_of, capture_of
from peaksight.gpus import find_card, room_on
from peaksight.records.capture_file import write_capture_file

MLP = Path(__file__).parents[1] / "scripts" / "mlp.py"


@pytest.fixture
def saved(tmp_path):
    """The file of a run on a T4 that holds 1 GiB at its peak."""
    path = tmp_path / "run.capture"
    write_capture_file(path, [capture_of(allocation_of(1 << 30, born=1))], room_on(find_card("t4")))
    return path


def without_lines(page):
    """A page but for what stands around the lines of the script."""
    return re.sub(r"<pre tabindex=\"0\"><span.*?</pre>", "", page, flags=re.DOTALL)


@pytest.mark.torch
@pytest.mark.parametrize("options", [("--batch", "8", "--width", "64"), ("--batch", "8", "--width", "8192")], ids=str)
def test_the_report_of_a_saved_run_is_that_of_the_run(peaksight, tmp_path, options):
    """GIVEN a run that fits and one that does not, THEN the same text, JSON and page; the script may be gone."""
    script = tmp_path / "train.py"
    script.write_text(MLP.read_text())
    card = ("--gpu", "t4", "--memory", "2GiB", "--reserved-by-others", "100MiB")
    run = peaksight("run", *card, "--save", "run.capture", "--json", "run.json", "--html", "run.html", script, *options)
    script.unlink()
    report = peaksight("report", "run.capture", "--json", "report.json", "--html", "report.html")

    pages = [(tmp_path / f"{name}.html").read_text() for name in ("run", "report")]
    assert (tmp_path / "run.json").read_text() == (tmp_path / "report.json").read_text()
    assert without_lines(pages[0]) == without_lines(pages[1])
    assert run.stdout.endswith(report.stdout)
    assert "predicted" in report.stdout.splitlines()[0]
    assert report.returncode == 0
    assert "Wrote" in run.stderr


@pytest.mark.torch
def test_a_failed_run_is_saved_as_far_as_it_got(peaksight):
    """GIVEN a script that raises in step 3, THEN exit 2, and the file says what the first two steps took."""
    run = peaksight("run", "--save", "run.capture", MLP, "--width", "64", "--fail-at", "3")
    report = peaksight("report", "run.capture")

    assert run.returncode == 2
    assert report.stdout.startswith("No answer for")
    assert "the script failed after 2 steps" in report.stdout


def test_json_alone_on_stdout(peaksight, saved):
    """WHEN the JSON goes to stdout, THEN nothing else does."""
    report = json.loads(peaksight("report", saved, "--json", "-").stdout)

    assert report["fits"] is True
    assert report["peak"]["allocated_bytes"] == 1 << 30


@pytest.mark.parametrize("options", [(), ("--json", "-"), ("--format", "markdown")], ids=str)
def test_what_reads_stdout_may_stop(saved, tmp_path, options):
    """GIVEN a pipe that nobody reads, as behind `head`, THEN files are written and the exit code is the answer."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "peaksight", "report", saved.name, "--html", "page.html", *options]
    done = subprocess.run(command, cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)

    assert 0 == done.returncode
    assert "page.html" in done.stderr
    assert (tmp_path / "page.html").stat().st_size


def test_torch_is_not_imported(saved):
    """A report is there at once, and on a machine without torch."""
    code = (
        "import sys; from peaksight.cli import main; "
        "main(['report', sys.argv[1], '--json', '-']); print({'torch', 'numpy'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, saved], capture_output=True, text=True, check=True)

    assert done.stderr.strip() == "set()"


def test_a_file_name_that_is_not_utf8():
    """GIVEN such a name and a strict stdout, THEN question marks for its odd bytes."""
    code = (
        "from peaksight.cli.output import Output; from peaksight.reporting import render_report; "
        "from helpers import report_of; report = report_of(steps=(), argv=(), torch=chr(0xdce9)); "
        "Output().draw(lambda console: render_report(report, console))"
    )
    environment = os.environ | {"PYTHONIOENCODING": "utf-8:strict", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)

    assert "torch ?" in done.stdout


@pytest.mark.parametrize(
    ("content", "slug"), [(b"", "not-a-capture"), (b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "capture-cut-short")]
)
def test_no_answer_is_one_sentence_with_a_slug(peaksight, tmp_path, content, slug):
    """Exit 2, one line on stderr, nothing on stdout."""
    (tmp_path / "file").write_bytes(content)
    done = peaksight("report", "file")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"docs/messages.md#{slug}.\n")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [("report", "run.capture"), ("run", "train.py")])
def test_nothing_runs_for_a_file_that_cannot_be_written(peaksight, saved, command):
    """GIVEN a file that exists, a folder that does not, or one file for two, THEN exit 2 before anything else."""
    exists = peaksight(command[0], "--json", saved.name, *command[1:])
    no_folder = peaksight(command[0], "--json", "no/report.json", *command[1:])
    twice = peaksight(command[0], "--json", "report", "--html", "report", *command[1:])

    assert [done.returncode for done in (exists, no_folder, twice)] == [2, 2, 2]
    assert "#file-exists" in exists.stderr
    assert "#cannot-write" in no_folder.stderr
    assert "named twice" in twice.stderr
