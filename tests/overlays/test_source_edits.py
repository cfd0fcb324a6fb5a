"""Statements in other words: GIVEN a script with a known leak THEN the edit is found, helps, and trains the same."""

import runpy
import sys

import pytest
import torch

from peaksight.diagnosis.diagnose import explained_report
from peaksight.errors import PlanError
from peaksight.gpus import known_cards
from peaksight.gpus.room import room_on
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.planning.fixes import (
    cloned_views,
    detached_sums,
    gradients_to_none,
    no_grad,
    released_outputs,
    separate_backwards,
)
from peaksight.planning.situation import Situation
from peaksight.planning.writing import written
from peaksight.records import ScriptCommand
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate
from peaksight.virtual_gpu import simulate_elsewhere

pytestmark = pytest.mark.torch

HEAD = """
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
rows = 8192 if device == "cuda" else 8
torch.manual_seed(0)


def network(width=1024):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64))


net = network().to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)


def loss_on(x, wanted):
    return (net(x) - wanted).square().mean()


def states_of(x):
    states = []
    for layer in net:
        x = layer(x)
        states.append(x)
    return states


total, kept = 0.0, []
for step in range(6):
    x = torch.randn(rows, 64, device=device)
"""
# What fills the body of the loop: as the script has it, and as its edits leave it.
DETACH = """
    loss_on(x, 0.0).backward()
    {}  # for the log
    optimizer.step()
    optimizer.zero_grad()
"""
NO_GRAD = """
    with torch.enable_grad():
        pass
    {}
    loss_on(x, wanted).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
RELEASE = """
    outputs = states_of(x)
    {}
    optimizer.step()
    optimizer.zero_grad()
"""
TO_NONE = """
    loss_on(x, 0.0).backward()
    optimizer.step()
    {}
"""
CLONE = """
    hidden = net[:2](x)
    {}
    net[2:](hidden).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
TWO = """
    {}
    second = 0.5 * loss_on(-x, 1.0)
    {}
    optimizer.step()
    optimizer.zero_grad()
"""
CASES = {
    "detach": (
        detached_sums,
        DETACH,
        ["total += loss_on(-x, 1.0) * 2"],
        ["total += (loss_on(-x, 1.0) * 2).detach()"],
    ),
    "no-grad": (
        no_grad,
        NO_GRAD,
        ["wanted = torch.tanh(teacher(x)).detach()"],
        ["with torch.no_grad():\n        wanted = torch.tanh(teacher(x)).detach()"],
    ),
    "release": (
        released_outputs,
        RELEASE,
        ["outputs[-1].square().mean().backward()"],
        ["outputs[-1].square().mean().backward()\n    del outputs"],
    ),
    "to-none": (
        gradients_to_none,
        TO_NONE,
        ["optimizer.zero_grad(set_to_none=False)"],
        ["optimizer.zero_grad(set_to_none=True)"],
    ),
    "clone": (
        cloned_views,
        CLONE,
        ["kept.append(hidden[:4].detach())"],
        ["kept.append(hidden[:4].detach().clone())"],
    ),
    "two": (
        separate_backwards,
        TWO,
        ["first = loss_on(x, 0.0)", "((first + second) / 2).backward()"],
        ["first = loss_on(x, 0.0)\n    (first / 2).backward()", "(second / 2).backward()"],
    ),
}


def script(body, *statements):
    """With a teacher where one is asked."""
    text = HEAD + body.lstrip("\n").format(*statements)
    return text.replace("total, kept", "teacher = network(4096).to(device)\ntotal, kept") if "teacher" in text else text


def situation_of(folder, text):
    """What the planner starts from."""
    (folder / "train.py").write_text(text)
    command = ScriptCommand(target=str(folder / "train.py"), args=())
    room = room_on(next(card for card in known_cards() if card.name == "t4"))
    captures = simulate_elsewhere(command, room, max_failures=0)
    report = explained_report(captures, room)
    return Situation(command=command, room=room, capture=captures[0], report=report, limit_bytes=0)


def trained(folder, *changes):
    """The parameters after a real run on the CPU under `changes`, and what of them did nothing."""
    with Patches() as patches:
        patches.set(sys, "path", [str(folder), *sys.path])
        applied = apply_changes(changes, patches)
        names = runpy.run_path(str(folder / "train.py"), run_name="__main__")
    return list(names["net"].parameters()), applied.without_effect()


@pytest.mark.parametrize("case", CASES)
def test_an_edit_is_found_and_helps_and_trains_the_same(tmp_path, case):
    """The diff is how a person writes it; the lines of the run stay the person's."""
    fix, body, before, after = CASES[case]
    situation = situation_of(tmp_path, script(body, *before))
    (candidate,) = fix.FIX.propose(situation)
    assert isinstance(candidate, Candidate), candidate

    (simulated,) = simulate_elsewhere(situation.command, situation.room, max_failures=0, changes=candidate.changes)
    expected, _ = trained(tmp_path)
    found, without_effect = trained(tmp_path, *candidate.changes)
    told, files = written(situation, candidate)
    diff = files.diff()

    assert simulated.peak_allocated_bytes < 0.98 * situation.capture.peak_allocated_bytes
    assert not without_effect and not simulated.without_effect
    close = torch.equal if candidate.effect.value == "bitwise" else torch.allclose
    assert all(close(a, b) for a, b in zip(expected, found, strict=True))
    assert {call.at for call in simulated.passes} == {call.at for call in situation.capture.passes}
    edited = [line[1:].strip() for line in diff.splitlines() if line[:1] == "+" and line[:3] != "+++"]
    lines = [line.strip() for words in after for line in words.splitlines()]
    assert [line.partition("  #")[0] for line in edited if line.partition("  #")[0] not in before] == [
        line for line in lines if line not in before
    ]
    assert all(each.in_diff for each in told)


def changed_in(folder, **edit):
    """A change of `train.py`."""
    return Change(kind="source-edit", parameters={"file": "train.py", **edit})


def test_an_edit_that_no_longer_applies(tmp_path):
    """What is at its line is something else: nothing runs."""
    (tmp_path / "train.py").write_text("net = None\nraise SystemExit('ran')\n")

    with pytest.raises(PlanError, match="it no longer reads 'x = 1'"):
        trained(tmp_path, changed_in(tmp_path, line=1, text="x = 1", replacement="x = 2"))


def test_an_edit_of_an_imported_file(tmp_path):
    """Also where its bytecode is cached, and only while the plan lasts."""
    (tmp_path / "train.py").write_text("import torch, part_of_plan\nnet = torch.nn.Linear(part_of_plan.width, 1)\n")
    (tmp_path / "part_of_plan.py").write_text("width = 2\r\nlast = 0\r\n")
    change = Change(
        kind="source-edit",
        parameters={"file": "part_of_plan.py", "line": 1, "text": "width = 2", "replacement": "width = 3"},
    )
    widths = []
    for changes in ((), (change,), ()):
        (weight, _), without_effect = trained(tmp_path, *changes)
        sys.modules.pop("part_of_plan")
        widths.append(weight.shape[1])
        assert not without_effect

    assert widths == [2, 3, 2]


def test_the_script_that_runs_already_cannot_be_edited(tmp_path, monkeypatch):
    """It was compiled before."""
    main = type(sys)("__main__")
    main.__file__ = str(tmp_path / "train.py")
    main.__spec__ = None
    (tmp_path / "train.py").write_text("x = 1\n")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.syspath_prepend(str(tmp_path))

    with Patches() as patches, pytest.raises(PlanError, match="it is running already"):
        apply_changes([changed_in(tmp_path, line=1, text="x = 1", replacement="x = 2")], patches)
