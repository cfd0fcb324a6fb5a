"""`peaksight.peak()` without IPython."""

import importlib
import subprocess
import sys

import pytest

import peaksight
from peaksight.errors import ScriptError, UsageError

TRAIN = """
def train(steps=2):
    import torch

    model = torch.nn.Linear(1024, 1024).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(steps):
        model(torch.ones(8, 1024, device="cuda")).sum().backward()
        optimizer.step()
"""
CODE = """
import torch
model = torch.nn.Linear(1024, 1024).cuda()
model(torch.ones(8, 1024, device="cuda")).sum().backward()
"""


@pytest.mark.torch
def test_a_function_of_a_module(tmp_path, monkeypatch):
    """Is imported where it is simulated."""
    (tmp_path / "training.py").write_text(TRAIN)
    monkeypatch.syspath_prepend(tmp_path)

    prediction = peaksight.peak(importlib.import_module("training").train, gpu="t4", calls=1)

    assert prediction.peak_bytes > 8 << 20
    assert f"{tmp_path / 'training.py'}:" in str(prediction)


@pytest.mark.torch
def test_a_function_of_a_script(tmp_path):
    """The script is loaded without what stands below `if __name__ == "__main__":`."""
    main = "import peaksight\nif __name__ == '__main__':\n    print(peaksight.peak(train, gpu='t4', calls=1))\n"
    (tmp_path / "main.py").write_text(f"{TRAIN}\n{main}")

    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True)

    assert "Fits a Tesla T4" in done.stdout, done.stderr


@pytest.mark.torch
def test_code_as_text():
    """Without a step of an optimizer it is no training, and says so; as inference it has an answer."""
    with pytest.raises(ScriptError, match="never stepped an optimizer") as raised:
        peaksight.peak(CODE, gpu="t4")
    prediction = peaksight.peak(CODE, gpu="t4", steps=0)

    assert raised.value.slug == "untrained"
    assert prediction.fits is True and prediction.peak_bytes == prediction.report.peak.reserved_bytes
    assert "Fits a Tesla T4" in str(prediction)
    assert "Alive at the peak" in str(prediction.show())
    assert prediction.report.argv == ("notebook.py",)
    assert "peaksight run notebook.py" in prediction.page


@pytest.mark.parametrize(
    "what, why",
    [
        (print, "builtin_function_or_method is no function"),
        (lambda batch: batch, "takes arguments"),
        (pytest.importorskip, "takes arguments"),
    ],
)
def test_what_cannot_be_called_elsewhere(what, why):
    """Is told, with what to do instead."""
    with pytest.raises(UsageError, match=why) as raised:
        peaksight.peak(what)

    assert raised.value.slug == "peak-what"


def test_a_simulation_in_a_simulation(monkeypatch):
    """Would have no end."""
    monkeypatch.setenv("PEAKSIGHT_PEAK_INSIDE", "1")

    with pytest.raises(UsageError, match="called by the code that it simulates"):
        peaksight.peak("1")
