"""Arguments of calls, changed in the text of a script; all else stays."""

import subprocess

import pytest

from peaksight.overlays.apply import OVERLAYS
from peaksight.planning.diffs import unified_diff
from peaksight.planning.editing import CallEdit, edited
from peaksight.planning.knob_values import CannotEditError
from peaksight.planning.writing import WORDS

FUSED = CallEdit(names={"torch.optim.AdamW"}, arguments={"foreach": lambda given: None, "fused": lambda given: "True"})


def after_import(line):
    """What becomes of `line`, and where something was changed."""
    head = b"import torch\nfrom torch import optim as o\nfrom torch.optim import AdamW as A\n"
    changed, lines = edited(head + line.encode() + b"\n", FUSED)
    assert changed.startswith(head)
    return changed[len(head) :].decode().removesuffix("\n"), lines


@pytest.mark.parametrize(
    "before, after",
    [
        ("a = torch.optim.AdamW(p)", "a = torch.optim.AdamW(p, fused=True)"),
        ("a = o.AdamW(p, lr = 1e-3 ) # why", "a = o.AdamW(p, lr = 1e-3, fused=True ) # why"),
        ("a = A(p, foreach=True, fused=False)", "a = A(p, fused=True)"),
        ("a = A()", "a = A(fused=True)"),
        ("a = A(\n    p,  # all\n    lr=1,  # low\n)", "a = A(\n    p,  # all\n    lr=1,  # low\n    fused=True,\n)"),
        ("a = A(\n    p\n)", "a = A(\n    p,\n    fused=True\n)"),
    ],
)
def test_an_argument_of_a_call(before, after):
    """However the class is imported and the call is laid out."""
    assert after_import(before) == (after, [4])


@pytest.mark.parametrize("line", ["a = A(p, **options)", "a = mine.AdamW(p)", "a = torch.optim.SGD(p)", "a = ("])
def test_what_stays(line):
    """Arguments that are not known, other classes of the same name, and what is no Python."""
    assert after_import(line) == (line, [])


def test_what_cannot_be_changed_leaves_all_as_it_is():
    """Rather than half of a change."""

    def refuse(given):
        raise CannotEditError

    source = b"from torch.optim import AdamW\nAdamW(p)\n"

    assert edited(source, CallEdit(names=["torch.optim.AdamW"], arguments={"lr": refuse})) == (source, [])


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_diff_applies(tmp_path, end):
    """With or without a newline at the end, of either kind."""
    newline = end or b"\n"
    before = newline.join([b"from torch.optim import AdamW", b"p = []", b"a = AdamW(p)"]) + end
    after, _ = edited(before, FUSED)
    (tmp_path / "train.py").write_bytes(before)
    diff = unified_diff(before, after, "train.py").encode()

    subprocess.run(["patch", "--binary", "-s", "-p1"], cwd=tmp_path, input=diff, check=True)

    assert (tmp_path / "train.py").read_bytes() == after != before


@pytest.mark.torch
def test_every_overlay_has_words():
    """One that a person cannot write is none."""
    assert set(WORDS) == set(OVERLAYS)
