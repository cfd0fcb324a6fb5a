"""The optimizers of the script: what they train, in which precision, and by which implementation."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch

from peaksight.records import OptimizerFact

_Kind = tuple[int, str, str, str, str, bool]


class OptimizersSeen:
    """Every optimizer that stepped, in that order; the ops of a step tell which implementation ran."""

    def __init__(self) -> None:
        """None has stepped."""
        self._seen: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._rows: dict[int, list[OptimizerFact]] = {}

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """`optimizer` has stepped: its state is there."""
        place = self._seen.setdefault(optimizer, len(self._seen))
        self._rows[place] = list(_rows(optimizer, place))

    @property
    def facts(self) -> tuple[OptimizerFact, ...]:
        """The rows of all of them, as they were after their last step."""
        return tuple(row for rows in self._rows.values() for row in rows)


def _rows(optimizer: torch.optim.Optimizer, place: int) -> Iterator[OptimizerFact]:
    groups: dict[_Kind, list[tuple[int, int, int]]] = defaultdict(list)
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            moments = [t for t in optimizer.state.get(parameter, {}).values() if _is_moment(t, parameter)]
            tensors = [part for moment in moments for part in _stored(moment, parameter)]
            kind = (
                place,
                type(optimizer).__name__,
                _implementation(group),
                _name(parameter.dtype),
                _name(tensors[0].dtype) if tensors else "",
                not parameter.requires_grad,
            )
            state_bytes = sum(tensor.nbytes for tensor in tensors)
            groups[kind].append((parameter.nbytes, state_bytes, parameter.numel()))
    for (_, kind_of, how, dtype, state_dtype, frozen), sizes in groups.items():
        yield OptimizerFact(
            optimizer=place,
            kind=kind_of,
            how=how,
            dtype=dtype,
            state_dtype=state_dtype,
            frozen=frozen,
            count=len(sizes),
            parameter_bytes=sum(size for size, _, _ in sizes),
            state_bytes=sum(size for _, size, _ in sizes),
            num_elements=sum(number for _, _, number in sizes),
        )


def _is_moment(value: Any, parameter: torch.Tensor) -> bool:
    """Whether a value of the state has a number for each of the parameter, and is no counter."""
    return isinstance(value, torch.Tensor) and value.numel() == parameter.numel() and value.dim() == parameter.dim()


def _stored(moment: torch.Tensor, parameter: torch.Tensor) -> list[torch.Tensor]:
    """What holds the numbers of `moment`: itself, or what they are quantised to, and then the scales of that.

    Both of a sharded parameter are counted as a whole.
    """
    if hasattr(parameter, "__tensor_flatten__") or not hasattr(moment, "__tensor_flatten__"):
        return [moment]
    return [getattr(moment, name) for name in moment.__tensor_flatten__()[0]]


def _implementation(group: dict[str, Any]) -> str:
    """What `_default_to_fused_or_foreach` takes on a card: foreach where nothing else is asked for."""
    if group.get("fused"):
        return "fused"
    return "for-loop" if group.get("foreach") is False or "foreach" not in group else "foreach"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
