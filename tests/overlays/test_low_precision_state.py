"""Adam as the 8-bit one of a library: a library of the same shape, since those that have it are large."""

import copy
import pickle
import sys

import pytest
import torch

from peaksight.errors import PlanError
from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = pytest.mark.torch

_LIBRARY = """
from torch.optim import Adam, SGD


class AdamW8bit(SGD):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, lr=lr, weight_decay=weight_decay)
        self.asked = {"lr": lr, "betas": betas, "weight_decay": weight_decay}


class Adam8bit(AdamW8bit):
    pass
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """One that is installed for the length of a test, by its name."""
    (tmp_path / "small_bits").mkdir()
    (tmp_path / "small_bits" / "__init__.py").touch()
    (tmp_path / "small_bits" / "optim.py").write_text(_LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield "small_bits"
    for name in [name for name in sys.modules if name.partition(".")[0] == "small_bits"]:
        del sys.modules[name]


def parameters():
    return [torch.nn.Parameter(torch.ones(4))]


def made(library, make):
    """What `make` makes under the plan, and whether that did something."""
    with Patches() as patches:
        applied = apply_changes([Change(kind="low-precision-state", parameters={"library": library})], patches)
        return make(), not applied.without_effect()


@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_arguments_are_passed_on(library, name):
    """GIVEN arguments of torch's WHEN the library has no such THEN they are left out, and the others are given."""
    optimizer, is_changed = made(
        library, lambda: getattr(torch.optim, name)(iter(parameters()), 0.5, betas=(0.8, 0.9), fused=True)
    )

    assert is_changed
    assert type(optimizer).__name__ == f"{name}8bit"
    assert optimizer.asked | {"weight_decay": 0} == {"lr": 0.5, "betas": (0.8, 0.9), "weight_decay": 0}
    assert len(optimizer.param_groups[0]["params"]) == 1
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5)
    assert optimizer.param_groups[0]["lr"] == 0.25


class Own(torch.optim.AdamW):
    """A class of the script."""


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.optim.AdamW(parameters(), amsgrad=True),
        lambda: torch.optim.Adam(parameters(), maximize=True),
        lambda: torch.optim.Adam(parameters(), lr=torch.tensor(0.1)),
        lambda: Own(parameters()),
        lambda: torch.optim.NAdam(parameters()),
        lambda: copy.deepcopy(pickle.loads(pickle.dumps(torch.optim.SGD(parameters())))),
    ],
)
def test_what_the_library_does_not_have_stays(library, make):
    """Rather than another formula without a word."""
    optimizer, is_changed = made(library, make)

    assert not is_changed
    assert "8bit" not in type(optimizer).__name__


def test_afterwards_all_is_as_before(library):
    """The class itself is torch's own."""
    made(library, lambda: torch.optim.AdamW(parameters()))

    assert type(torch.optim.AdamW(parameters())) is torch.optim.AdamW


def test_a_library_that_is_not_there():
    """GIVEN a plan of another machine WHEN it is applied THEN it says so, before anything runs."""
    with pytest.raises(PlanError, match="pip install no_such_bits"):
        made("no_such_bits", parameters)


@pytest.mark.parametrize("name", ["bitsandbytes", "torchao"])
def test_the_real_ones(name):
    """Where they are installed: the arguments that are passed on are theirs."""
    pytest.importorskip(name)

    optimizer, is_changed = made(name, lambda: torch.optim.AdamW(parameters(), lr=0.5, betas=(0.8, 0.9)))

    assert is_changed
    assert type(optimizer).__module__.startswith(name)
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.9)
