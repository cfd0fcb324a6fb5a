"""Which scripts are taken to be under JAX."""

import pytest
from click.testing import CliRunner

from peaksight.cli import peaksight
from peaksight.cli.frameworks import trains_under_jax
from peaksight.errors import UnsupportedError
from peaksight.records import ScriptCommand


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import jax", True),
        ("import flax.linen as nn", True),
        ("import model", True),
        ("from torch.utils.data import DataLoader\nimport jax", True),
        ("import torch\nimport jax", False),
        ("import torch", False),
        ("import numpy", False),
        ("import runpy\nrunpy.run_path('model.py')", True),
        ("import elsewhere", True),
        ("import peaksight", False),
        ("import jax as", False),
    ],
)
def test_by_what_it_imports(tmp_path, monkeypatch, source, expected):
    """Its own imports count, and those of modules beside it, on PYTHONPATH, and of what it runs."""
    (tmp_path / "model.py").write_text("from jax import numpy\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "elsewhere.py").write_text("import flax\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'more'}")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(source)

    assert trains_under_jax(ScriptCommand(target=str(script))) is expected


def test_what_is_there_for_torch_only(tmp_path):
    """One sentence, and what to do instead; nothing is run."""
    script = tmp_path / "train.py"
    script.write_text("import jax\nraise RuntimeError('it ran')\n")
    asked = [
        ["verify", "--against", str(script), str(script)],
        ["fix", "--vary", "--batch 2,4", str(script)],
        ["fix", "--certify", str(script)],
    ]

    for words in asked:
        done = CliRunner().invoke(peaksight, words)
        assert isinstance(done.exception, UnsupportedError)
        assert "under JAX" in str(done.exception) and "peaksight.jax.verify" in str(done.exception)
