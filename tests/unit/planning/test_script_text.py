"""What a plan reads in the person's files."""

import ast
import re

import pytest

from peaksight.planning.script_text import ScriptText, ends_early


def text(source):
    """Of one file, `train.py`."""
    return ScriptText({"train.py": ast.parse(source)})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("loss = criterion(model(x), y)\nloss.backward()", False),
        ("criterion = nn.MSELoss(reduction='sum')", True),
        ("loss = (model(x) - y).pow(2).sum()\nloss.backward()", True),
        ("correct = (guess == y).sum()\nloss.backward()", False),
    ],
)
def test_a_loss_that_is_a_sum(source, expected):
    """By its reduction, or where it is computed."""
    assert text(source).sums_its_loss is expected


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for x, y in loader:\n    step(x, y)", False),
        ("for i, batch in enumerate(tqdm(loader)):\n    step(batch)", False),
        ("for i, batch in enumerate(DataLoader(Images(), batch_size=4)):\n    step(batch)", False),
        ("for batch in head(loader, 10):\n    step(batch)", True),
        ("for i, batch in zip(range(100), loader):\n    step(batch)", True),
        ("for i, batch in enumerate(loader):\n    if i == 100:\n        break", True),
        ("for batch in islice(loader, 100):\n    step(batch)", True),
    ],
)
def test_loops_that_may_end_early(loop, expected):
    """They count what they read."""
    found = text(loop).loop_at("train.py:1")

    assert ends_early(found) is expected


def test_names_imports_and_assignments():
    """Comments and strings are none of them."""
    script = text(
        "import lightning.pytorch as pl  # contrastive\nfrom torch import nn\np.grad = None\nmodel.ema_decay(x)"
    )

    assert script.imports("lightning") and not script.imports("accelerate")
    assert script.names(re.compile("ema")) and not script.names(re.compile("contrastive"))
    assert script.assigns("grad") and not script.assigns("ema_decay")
    assert script.calls("ema_decay") and not script.calls("grad")
    assert script.loop_at("other.py:1") is None
