"""Where rows of the input are in the result of each operator."""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

import torch

Given = Mapping[str, Any]


class Mixed(Exception):
    """Rows that depend on each other, or that nobody knows of that they do not; the text says why."""


class Rows(NamedTuple):
    """Rows are along `dim`, each as `inner` elements next to each other: a size of rows x inner."""

    dim: int
    inner: int


def named_arguments(func: Any, args: tuple[Any, ...], kwargs: Given) -> dict[str, Any]:
    """The arguments of an operator by their names, those that were left out with their defaults."""
    given = {each.name: each.default_value for each in func._schema.arguments}
    return given | {each.name: value for each, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)


def pointwise(func: Any) -> bool:
    """Whether each element of the result comes of one element of each argument."""
    return torch.Tag.pointwise in func.tags or func.overloadpacket.__name__ in _LIKE_POINTWISE


_LIKE_POINTWISE = {"clone", "_to_copy", "detach", "alias", "copy_", "native_dropout", "bernoulli_", "bernoulli"}
_LIKE_POINTWISE |= {"empty_like", "zeros_like", "ones_like", "full_like", "lift_fresh_copy", "_fused_dropout"}
# What is the same in all its elements.
FACTORIES = {"zeros", "ones", "full", "new_zeros", "new_ones", "new_full", "scalar_tensor"}


def _dims(given: Given, ndim: int, *names: str) -> set[int]:
    """The dimensions that an operator works along, counted from the front."""
    value = next((given[name] for name in names if given.get(name) is not None), None)
    if value is None or value == []:
        return set(range(ndim))
    return {each % ndim for each in (value if isinstance(value, (list, tuple)) else [value])}


def _broadcast(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    """Rows are as far from the last dimension in each tensor that has them; others have one element there, or none."""
    places = {(tensor.dim() - rows.dim, rows.inner) for tensor, rows in where.items() if isinstance(rows, Rows)}
    if len(places) != 1:
        raise Mixed("it takes rows of two tensors in different places")
    ((from_last, inner),) = places
    for tensor, rows in where.items():
        if rows is None and tensor.dim() >= from_last and tensor.size(-from_last) != 1:
            raise Mixed("it takes a number for each row from elsewhere")
    return Rows(result.dim() - from_last, inner)


def _reshaped(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    """Elements stay in their order: rows have the same number of elements before them."""
    tensor, rows = _only(where)
    before = prod(tensor.shape[: rows.dim])
    for dim, size in enumerate(result.shape):
        if prod(result.shape[:dim]) == before and size % count == 0:
            return Rows(dim, size // count)
    raise Mixed("a view joins rows with what is in front of them")


def _permuted(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    tensor, rows = _only(where)
    order = list(range(tensor.dim()))
    if given.get("dims") is not None:
        order = [each % tensor.dim() for each in given["dims"]]
    else:
        first, second = given.get("dim0", 0), given.get("dim1", -1)
        order[first], order[second] = order[second], order[first]
    return Rows(order.index(rows.dim), rows.inner)


def _expanded(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    tensor, rows = _only(where)
    return Rows(result.dim() - (tensor.dim() - rows.dim), rows.inner)


def _along(*names: str) -> Callable[..., Rows]:
    """It works along dimensions in which rows are not, and keeps all of them."""

    def rule(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
        tensor, rows = _only(where)
        is_all_of_it = "start" in given and result.shape == tensor.shape
        if rows.dim in _dims(given, tensor.dim(), *names) and not is_all_of_it:
            raise Mixed("it works along the rows")
        return rows

    return rule


def _reduced(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    """It works along dimensions in which rows are not, and drops them unless they are kept."""
    tensor, rows = _only(where)
    dims = _dims(given, tensor.dim(), "dim")
    if rows.dim in dims:
        raise Mixed("it reduces over the rows")
    dropped = 0 if given.get("keepdim") else sum(each < rows.dim for each in dims)
    return Rows(rows.dim - dropped, rows.inner)


def _normalised(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    (rows,) = {rows for rows in where.values() if rows is not None}
    if where.get(given["input"]) != rows or rows.dim >= given["input"].dim() - len(given["normalized_shape"]):
        raise Mixed("it normalises over the rows")
    return rows


def _padded(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    tensor, rows = _only(where)
    first, pad = 2 * (tensor.dim() - 1 - rows.dim), given["pad"]
    if any(pad[first : first + 2]):
        raise Mixed("it pads the rows")
    return rows


def _product(left: str, right: str) -> Callable[..., Rows]:
    """A matrix with rows times one without."""

    def rule(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
        rows = where.get(given[left])
        others = [each for tensor, each in where.items() if tensor is not given[left]]
        if not isinstance(rows, Rows) or rows.dim != 0 or any(others):
            raise Mixed("a product of matrices sums over the rows")
        if "self" in given and left != "self" and given["self"].dim() != 1:
            raise Mixed("it adds a number for each row from elsewhere")
        return rows

    return rule


def _batched(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    """Products of as many matrices as there are rows."""
    if set(where.values()) - {"uniform"} != {rows := next(each for each in where.values() if isinstance(each, Rows))}:
        raise Mixed("a product takes a matrix for each row from elsewhere")
    if rows.dim != 0:
        raise Mixed("a product of matrices sums over the rows")
    return rows


def _first_only(name: str) -> Callable[..., Rows]:
    """The argument `name` has rows in front, the others none."""

    def rule(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
        if where.get(given[name]) != Rows(0, 1) or sum(each is not None for each in where.values()) != 1:
            raise Mixed("a convolution has rows elsewhere than in front")
        return Rows(0, 1)

    return rule


def _joined(given: Given, where: Any, count: int, result: torch.Tensor) -> Rows:
    """Along a dimension that is not the rows'; `stack` makes that dimension."""
    found = set(where.values()) - {"uniform"}
    if len(found) != 1 or None in found:
        raise Mixed("it joins rows with what has none")
    rows, dim = found.pop(), given["dim"] % result.dim()
    is_new = result.dim() > given["tensors"][0].dim()
    if not is_new and dim == rows.dim:
        raise Mixed("it joins rows with others")
    return Rows(rows.dim + (is_new and dim <= rows.dim), rows.inner)


def _only(where: Any) -> tuple[torch.Tensor, Rows]:
    """The one tensor with rows."""
    found = [(tensor, rows) for tensor, rows in where.items() if isinstance(rows, Rows)]
    if len(found) != 1:
        raise Mixed("it takes rows of two tensors")
    return found[0]


def _each(rule: Callable[..., Rows], names: Iterable[str]) -> dict[str, Callable[..., Rows]]:
    return dict.fromkeys(names, rule)


RULES: dict[str, Callable[..., Rows]] = {
    "pointwise": _broadcast,
    **_each(_reshaped, ("view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze")),
    **_each(_permuted, ("permute", "transpose", "t")),
    "expand": _expanded,
    **_each(_along("dim"), ("slice", "split", "split_with_sizes", "cumsum", "cumprod", "logcumsumexp", "_softmax",
                            "_log_softmax", "sort", "topk")),
    "flip": _along("dims"),
    **_each(_reduced, ("select", "unbind", "sum", "mean", "amax", "amin", "var", "std", "logsumexp",
                       "linalg_vector_norm", "max", "min", "argmax", "argmin")),
    **_each(_normalised, ("native_layer_norm", "_fused_rms_norm")),
    "constant_pad_nd": _padded,
    "mm": _product("self", "mat2"),
    "addmm": _product("mat1", "mat2"),
    "bmm": _batched,
    "convolution": _first_only("input"),
    **_each(_joined, ("cat", "stack")),
}  # fmt: skip
