"""GIVEN statements that freeze parameters, THEN each is known with what it froze and whether it was come to."""

import contextlib
import sys
import textwrap

import pytest

from peaksight.errors import StopSimulation
from peaksight.overlays.patches import Patches
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import run_script
from peaksight.virtual_gpu.unreached import Lookout

from .cards import h100

pytestmark = pytest.mark.torch

HEAD = """\
import torch
from torch import nn
net = nn.ModuleDict({"body": nn.Linear(64, 64, bias=False), "norm": nn.LayerNorm(64)}).cuda()
fast = False
"""
LOOP = """
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    net["norm"](net["body"](torch.ones(4, 64, device="cuda"))).sum().backward()
    opt.step()
    for p in net["norm"].parameters(): p.requires_grad = step < 5
    if step == 5:
        for p in net["norm"].parameters(): p.requires_grad = False
"""
BODY_BYTES = 64 * 64 * 4


@pytest.fixture
def first_freeze(tmp_path, monkeypatch):
    """Trains after some lines for two steps; gives the first fact of a freeze; `LOOP` has one that is not reached."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(source):
        (tmp_path / "train.py").write_text(HEAD + textwrap.dedent(source) + LOOP)
        lookout = Lookout(str(tmp_path))
        gpu = h100(lookout=lookout, max_steps=2, script_dir=str(tmp_path))
        with gpu, Patches() as patches, contextlib.suppress(StopSimulation):
            lookout.install(patches)
            run_script(ScriptCommand(target="train.py"), lookout.files.compile)
        gpu.witness.run_ended(lookout.files)
        assert not gpu.witness.has_failed
        return min(gpu.witness.freezes, key=lambda fact: int(fact.at.rpartition(":")[2]))

    return run


@pytest.mark.parametrize(
    "source",
    [
        """
        for name, p in net.named_parameters():
            if name.startswith("encoder"):
                p.requires_grad = False
        """,
        """
        for name, p in net.named_parameters():
            if "encoder" not in name:
                continue
            p.requires_grad_(False)
        """,
        """
        for p in filter(lambda p: p.ndim > 5, net.parameters()):
            p.requires_grad = False
        """,
        "[p.requires_grad_(False) for name, p in net.named_parameters() if 'encoder' in name]",
        """
        def freeze(module):
            for name, p in module.named_parameters():
                p.requires_grad = "encoder" not in name
        freeze(net)
        """,
    ],
)
def test_a_filter_that_matches_nothing_was_come_to_and_froze_nothing(first_freeze, source):
    fact = first_freeze(source)
    assert (fact.reached, fact.num_parameters, fact.frozen_bytes) == (True, 0, 0)


@pytest.mark.parametrize(
    "source",
    [
        """
        for name, p in net.named_parameters():
            if "body" in name:
                p.requires_grad = False
        """,
        "net['body'].requires_grad_(False)",
        """
        for name, p in net.named_parameters():
            p.requires_grad = "body" not in name
        """,
    ],
)
def test_a_filter_that_matches_has_the_bytes_that_it_froze(first_freeze, source):
    fact = first_freeze(source)
    assert (fact.num_parameters, fact.frozen_bytes, fact.frozen_matrices) == (1, BODY_BYTES, 1)


@pytest.mark.parametrize(
    "source",
    [
        "if fast: net['body'].requires_grad_(False)",
        """
        for name, p in net.named_parameters():
            if fast:
                if "body" in name:
                    p.requires_grad = False
        """,
        """
        def freeze(module):
            module.requires_grad_(False)
        """,
    ],
)
def test_a_freeze_that_is_switched_off_was_not_come_to(first_freeze, source):
    assert not first_freeze(source).reached


def test_what_a_library_freezes_has_the_line_that_called_it(first_freeze, tmp_path, monkeypatch):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "adapters_of_test.py").write_text("def adapt(net):\n    net['body'].requires_grad_(False)\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(library)])
    fact = first_freeze("from adapters_of_test import adapt\nadapt(net)")
    assert (fact.at, fact.text, fact.reached, fact.frozen_bytes) == ("train.py:6", "", True, BODY_BYTES)


def test_the_other_branch_of_a_filter_is_called_that(first_freeze):
    source = """
    for name, p in net.named_parameters():
        if name:
            pass
        else:
            p.requires_grad = False
    """
    assert first_freeze(source).condition == "else of if name"


def test_a_freeze_that_is_undone_says_where(first_freeze):
    fact = first_freeze("net['body'].requires_grad_(False)\nnet.requires_grad_(True)")
    assert (fact.frozen_bytes, fact.thawed_bytes, fact.thawed_at) == (0, BODY_BYTES, "train.py:6")


def test_what_is_about_other_tensors_is_no_freeze(first_freeze):
    fact = first_freeze("x = torch.ones(4, device='cuda')\nx.requires_grad_(False)")
    assert fact.at == "train.py:13"


def test_what_the_loop_switches_later_is_no_freeze_without_effect(first_freeze):
    assert not first_freeze("pass").reached
