"""What a step leaves to the steps after it."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from peaksight.records import Phase, Role
from peaksight.virtual_gpu.memory.births import Birth

# What is made once for all steps, or belongs to it.
_OF_THE_MODEL = {Role.PARAMETER, Role.GRADIENT, Role.OPTIMIZER_STATE, Role.BUFFER, Role.WORKSPACE, Role.COMMUNICATION}


def left_behind_bytes(births: Sequence[Birth], step: int) -> int:
    """What the step before `step` made and is there still at the end of `step`, the last of `births`, in order."""
    return sum(birth.allocated_bytes for birth in _of_step(births, step - 1) if _is_left(birth))


def _of_step(births: Sequence[Birth], step: int) -> Iterator[Birth]:
    since = takewhile(lambda birth: birth.step >= step, reversed(births))
    return (birth for birth in since if birth.step == step)


def _is_left(birth: Birth) -> bool:
    return birth.died is None and birth.role not in _OF_THE_MODEL and birth.phase is not Phase.INIT
