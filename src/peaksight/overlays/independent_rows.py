"""Whether the rows of a module's input are independent of each other, by the operators that it runs.

Each tensor that comes of the input has its rows along one dimension; a rule for each operator says where they are in
its result. What has no rule, or mixes rows, is not proved. The module is run for two rows and for three: a number that
depends on how many there are is no constant.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakTensorKeyDictionary

from peaksight.overlays.row_rules import FACTORIES, RULES, Mixed, Rows, named_arguments, pointwise

_FEW, _MORE = 2, 3


def why_dependent(forward: Callable[[torch.Tensor], Any], rows: torch.Tensor, *, may_draw: bool) -> str:
    """Why `forward` of `rows` (rows, ...) may not be that of parts of them, empty where it is.

    Args:
        forward: Is called with the first rows without autograd; random numbers that it draws are put back.
        may_draw: Whether it may draw random numbers, which parts draw in another order.
    """
    if len(rows) < _MORE:
        return "there are too few rows"
    devices = [rows.device.index] if rows.is_cuda else []
    try:
        with torch.random.fork_rng(devices), torch.no_grad(), _no_cached_casts():
            runs = [_followed(forward, rows[:count].detach(), may_draw) for count in (_FEW, _MORE)]
    except Mixed as mixed:
        return str(mixed)
    return "" if runs[0] == runs[1] else "a number in it depends on how many rows there are"


@contextmanager
def _no_cached_casts() -> Iterator[None]:
    """Casts of weights that autocast keeps from here would have no gradient later on."""
    before = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(before)


def _followed(forward: Callable[[torch.Tensor], Any], rows: torch.Tensor, may_draw: bool) -> list[Any]:
    """The operators of one run with their numbers.

    Raises:
        Mixed: rows are not independent, as far as the rules go.
    """
    with _Following(rows, may_draw) as following:
        result = forward(rows)
    if not isinstance(result, torch.Tensor) or following.rows.get(result) != Rows(0, 1):
        raise Mixed("its result has no row for each of its input")
    return following.ran


class _Following(TorchDispatchMode):
    """Follows the rows through each operator; what is changed in place has to be made on the way."""

    def __init__(self, rows: torch.Tensor, may_draw: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows: Any = WeakTensorKeyDictionary()
        self.rows[rows] = Rows(0, 1)
        self.ran: list[Any] = []
        self._count, self._may_draw = len(rows), may_draw
        self._made: Any = WeakTensorKeyDictionary()
        self._uniform: Any = WeakTensorKeyDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = named_arguments(func, args, kwargs)
        self._check(func, given)
        result = func(*args, **kwargs)
        self._note(func, given, [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)])
        return result

    def _check(self, func: Any, given: Mapping[str, Any]) -> None:
        """Before it runs: it draws nothing, and changes nothing that was there before."""
        if torch.Tag.nondeterministic_seeded in func.tags and not self._may_draw:
            raise Mixed(f"{func} draws random numbers")
        changed = [given[a.name] for a in func._schema.arguments if a.alias_info and a.alias_info.is_write]
        if any(tensor not in self._made for tensor in pytree.tree_leaves(changed) if isinstance(tensor, torch.Tensor)):
            raise Mixed(f"{func} changes what the module keeps")
        if func is torch.ops.aten.lift_fresh.default:
            raise Mixed("it makes a tensor of numbers")

    def _note(self, func: Any, given: Mapping[str, Any], results: Iterable[torch.Tensor]) -> None:
        name = func.overloadpacket.__name__
        tensors = [each for each in pytree.tree_leaves(given) if isinstance(each, torch.Tensor)]
        followed = [each for each in tensors if each in self.rows]
        is_view = any(each.alias_info and not each.alias_info.is_write for each in func._schema.returns)
        for result in results:
            if not is_view or all(each in self._made for each in tensors):
                self._made[result] = None
            if name in FACTORIES:
                self._uniform[result] = None
            elif followed:
                self.rows[result] = self._rule(func)(given, self._where(tensors), self._count, result)
        self.ran.append((str(func), _numbers(given) if pointwise(func) or name == "full" else ()))

    def _rule(self, func: Any) -> Callable[..., Rows]:
        rule = RULES.get("pointwise" if pointwise(func) else func.overloadpacket.__name__)
        if rule is None:
            raise Mixed(f"there is no rule for {func}")
        return rule

    def _where(self, tensors: Iterable[torch.Tensor]) -> Any:
        """Where the rows of each tensor are; what is the same in all its elements has them wherever they should be."""
        known: Any = WeakTensorKeyDictionary()
        for tensor in tensors:
            known[tensor] = self.rows.get(tensor) or ("uniform" if tensor in self._uniform else None)
        return known


def _numbers(given: Mapping[str, Any]) -> tuple[Any, ...]:
    """Those of the arguments that are no tensors, but for sizes."""
    leaves = pytree.tree_leaves({name: value for name, value in given.items() if name != "size"})
    return tuple(each for each in leaves if isinstance(each, (bool, int, float, complex)))
