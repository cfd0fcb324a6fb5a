"""What is known of unknown values: noted on their tensor, until it or what it shares memory with is written to."""

from typing import Any

from peaksight.virtual_gpu.tensors.known import Family, attach, family_of


def note(tensor: Any, name: str, what: Any, *, view_of: Any = None) -> None:
    """Keep `what` under `name`, beside what else is noted of `tensor` and of the tensor that it is a view of."""
    families = (family_of(tensor), family_of(view_of))
    family = next((each for each in families if each is not None and each.valid), None) or Family()
    attach(tensor, None, family)
    setattr(tensor, name, (what, family))


def noted(tensor: Any, name: str) -> Any:
    """What is noted under `name` and still holds, else None."""
    what, family = getattr(tensor, name, (None, None))
    return what if family is not None and family.valid else None
