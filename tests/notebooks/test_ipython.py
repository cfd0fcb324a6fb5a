"""`peaksight.peak()` and `%%peaksight` in IPython."""

import json
import os
import subprocess
import sys
from html import unescape

import pytest

pytestmark = pytest.mark.torch

# Runs the cells that stdin lists, and prints what each said and returned.
SESSION = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell, answers = InteractiveShell.instance(), []
for cell in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        done = shell.run_cell(cell, store_history=True)
    html = done.result._repr_html_() if hasattr(done.result, "_repr_html_") else ""
    error = done.error_in_exec or done.error_before_exec
    answers.append({"out": out.getvalue(), "err": err.getvalue(), "html": html, "error": str(error or "")})
json.dump(answers, sys.stdout)
"""
MODEL = """
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(1024, 1024).to(device)
optimizer = torch.optim.AdamW(model.parameters())
"""
STEP = """
def train_step():
    loss = model(torch.ones(8, 1024, device=device)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


CELLS = {
    "set up": "%load_ext peaksight\nimport peaksight\nimport torch",
    "model": MODEL,
    "touched": "print(model.weight.sum() > 1e9)",
    "peak": f"{STEP}\nprediction = peaksight.peak(train_step, gpu='t4')\nprint(prediction.fits)\nprediction",
    "own": "print(model.weight.device, model.weight.grad)",
    "page": "%%peaksight --gpu t4\nfor _ in range(3):\n    train_step()",
    "unknown": "%%peaksight --gpu t4\nmodell(3)",
    "option": "%%peaksight --gpu t44\nmodel",
    "refused": "%%peaksight --html x.html\nmodel",
    "no function": "peaksight.peak(model)",
}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What each of the cells said and returned, by its name; they run in a fresh IPython, in an empty folder."""
    folder = tmp_path_factory.mktemp("notebook")
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        input=json.dumps(list(CELLS.values())),
        cwd=folder,
        env=os.environ | {"IPYTHONDIR": str(folder), "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(CELLS, json.loads(done.stdout), strict=True))


def test_a_function_of_a_cell(said):
    """Is called on the virtual card after what it uses, of this cell what is above; the notebook's model stays."""
    peak = said["peak"]

    assert not said["touched"]["error"]
    assert "Fits a Tesla T4" in peak["out"] and "optimizer state" in peak["out"]
    assert "Not run before it, though they use what it uses: In[3]" in peak["out"]
    assert "notebook.py:" in peak["out"] and "Not simulated" in peak["out"]
    assert "<table>" in peak["html"] and "<script" not in peak["html"]
    assert said["own"]["out"] == "cpu None\n"


def test_a_cell(said):
    """Shows the page of `--html` in a frame of its own, and the report as text elsewhere.

    Of the cell that calls `peak()` it needs the function: the call, and what uses its answer, are left out.
    """
    page = said["page"]

    assert "Alive at the peak" in page["out"] and "\033[" not in page["out"]
    frame = page["html"].partition("<iframe ")[2]
    assert 'sandbox="allow-scripts allow-downloads"' in frame
    srcdoc = unescape(frame.partition('srcdoc="')[2].partition('"')[0])
    assert srcdoc.lstrip().lower().startswith("<!doctype html>") and "Tesla T4" in srcdoc


def test_what_cannot_be_answered(said):
    """A name that no cell defines, an option that is none, one that has no meaning, a model in place of a function."""
    assert "NameError: name 'modell'" in said["unknown"]["err"]
    assert "No cell that ran defines modell." in said["unknown"]["err"]
    assert "did you mean t4?" in said["option"]["err"]
    assert "--html has no meaning above a cell" in said["refused"]["err"]
    assert "Linear is no function" in said["no function"]["error"]
