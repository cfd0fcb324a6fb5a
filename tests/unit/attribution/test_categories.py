"""Categories: the role if the run saw one, else the lifetime."""

import pytest

from helpers import allocation_of, capture_of, step_of
from peaksight.attribution.categories import Categories
from peaksight.records import Category, Phase, Role
from peaksight.units import MIB

BACKWARD_AT = 10


def category_of(*, born, died=None, **about):
    """The category of one allocation in a capture with a backward pass at tick 10."""
    allocation = allocation_of(MIB, born=born, died=died, **about)
    return Categories(capture_of(allocation, steps=[step_of(1, 1, 20, [BACKWARD_AT])])).of(allocation)


@pytest.mark.parametrize("role", [role for role in Role if role not in (Role.UNMARKED, Role.UNKNOWN)])
def test_a_role_is_the_category(role):
    """What the run saw needs no conclusion."""
    assert category_of(born=1, role=role) == Category(role.value)


def test_nothing_is_claimed_of_what_nothing_tells():
    """However long it lived."""
    assert category_of(born=5, died=12, role=Role.UNKNOWN) is Category.OTHER


def test_what_the_forward_keeps_for_backward_is_an_activation():
    """Alive when the next backward pass starts: saved for it."""
    assert category_of(born=5, died=12) is Category.ACTIVATION


def test_what_the_forward_drops_is_temporary():
    """Gone before the next backward pass starts."""
    assert category_of(born=5, died=9) is Category.TEMPORARY


def test_dying_at_the_start_of_backward_is_temporary():
    """A block freed by the very call before the backward pass was not waiting for it."""
    assert category_of(born=5, died=BACKWARD_AT) is Category.TEMPORARY


def test_an_output_of_reentrant_checkpointing_is_an_activation():
    """Its forward runs under no_grad, but its outputs wait for the backward pass."""
    assert category_of(born=5, died=12, grad_enabled=False) is Category.ACTIVATION


@pytest.mark.parametrize(("grad_enabled", "category"), [(True, Category.ACTIVATION), (False, Category.TEMPORARY)])
def test_backward_makes_temporaries_unless_it_recomputes(grad_enabled, category):
    """Only checkpointing records in a backward pass."""
    assert category_of(born=12, phase=Phase.BACKWARD, grad_enabled=grad_enabled) is category


@pytest.mark.parametrize(("grad_enabled", "category"), [(True, Category.ACTIVATION), (False, Category.TEMPORARY)])
def test_without_a_later_backward_recording_decides(grad_enabled, category):
    """A capture that ends in a forward shows no backward pass; autograd's recording is the best witness."""
    assert category_of(born=15, grad_enabled=grad_enabled) is category


@pytest.mark.parametrize(("died", "category"), [(None, Category.INPUT), (4, Category.TEMPORARY)])
def test_data_made_before_the_first_forward_is_input(died, category):
    """A data set on the card stays; a temporary of the initialisation does not."""
    assert category_of(born=2, died=died, phase=Phase.INIT) is category


def test_an_optimizer_makes_temporaries():
    """Its state is marked; the rest is gone after the step."""
    assert category_of(born=15, phase=Phase.OPTIMIZER, grad_enabled=False) is Category.TEMPORARY


def test_the_rest_is_other():
    """What is born while saving has no name."""
    assert category_of(born=15, phase=Phase.SAVE) is Category.OTHER
