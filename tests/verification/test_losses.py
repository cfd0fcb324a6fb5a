"""What a certificate says of losses that differ where no tensor does."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.torch


def experiment(original, changed):
    """Of one step, with these losses, and nothing drawn."""

    def runs(loss):
        step = SimpleNamespace(losses=(loss,), random_state="a")
        return SimpleNamespace(ranks=[SimpleNamespace(rank=0, steps=[step])])

    return SimpleNamespace(original=runs(original), changed=runs(changed))


def test_losses_of_other_bits_are_told():
    """They decide nothing: every gradient is the same."""
    from peaksight.verification.certify import _bitwise

    same, apart = _bitwise(experiment(2.5, 2.5)), _bitwise(experiment(2.5, 2.5000002384185791))

    assert (same.verdict, apart.verdict) == ("bitwise", "bitwise")
    assert same.reasons == ("every recorded tensor has the same bits",)
    assert apart.reasons[1:] == (
        "the losses have not: 2.5 and 2.500000238418579 in step 1, of which nothing reached a gradient",
    )
