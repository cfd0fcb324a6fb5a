"""What a step leaves to the steps after it."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from peaksight.records import Phase, Role
from peaksight.virtual_gpu.memory.births import Birth

# What is made once for all steps, or belongs to it.
_OF_THE_MODEL = {Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE, Role.BUFFER, Role.WORKSPACE, Role.COMMUNICATION}


def left_behind_bytes(births: Sequence[Birth], step: int) -> int:
    """What each step made and is there still two steps later, at the end of `step`, the last of `births`, in order.

    A batch that is fetched ahead is there one step later, and gone. Of the first step nothing can be said, which makes
    what stays for all: until the fourth, what the step before has left tells.
    """
    since = list(takewhile(lambda birth: birth.step >= step - 2, reversed(births)))
    left = _left_by(since, step - 1)
    return min(left, _left_by(since, step - 2)) if step > 3 else left


def _left_by(births: Iterable[Birth], step: int) -> int:
    return sum(birth.allocated_bytes for birth in births if birth.step == step and _is_left(birth))


def _is_left(birth: Birth) -> bool:
    return birth.died is None and birth.role not in _OF_THE_MODEL and birth.phase is not Phase.INIT
