"""The cases: PyTorch's own samples for every operator, module and optimizer that its tests know, in two sizes.

The samples are made on the CPU from fixed seeds, so that a machine without a GPU makes the same ones.
"""

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
import torch.testing._internal.common_methods_invocations as invocations
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.utils._pytree import tree_leaves, tree_map

from benchmarks.operators.layers import LAYERS

# PyTorch's test utilities forbid to set its global flags; scripts may set them.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool)
MAX_SAMPLES = 12
MAX_SAMPLE_BYTES = 1 << 26
# The sizes that PyTorch's samples are built from, as its tests have them and larger: below 512 bytes every
# block is alike.
SIZES = {"small": (5, 10, 20), "large": (24, 40, 64)}


Maker = tuple[str, Callable[[], Iterator["Case"]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call that can be made on any device: `prepare()` returns `run`, which returns what it computed."""

    source: str
    name: str
    dtype: str
    size: str
    index: int
    signature: str
    prepare: Callable[[], Callable[[], Any]]

    @property
    def key(self) -> str:
        """Names the case within a release of PyTorch."""
        return f"{self.source} {self.name} {self.dtype} {self.size} {self.index}"


def all_cases(sources: Iterable[str] = (), name: str = "", part: int = 0, num_parts: int = 1) -> Iterator[Case]:
    """Every case of `sources` (all without any) whose name begins with `name`; one of `num_parts` parts of them.

    Make use of a case before asking for the next: it refers to the loops that made it.
    """
    makers = [make for source in sources or SOURCES for made, make in SOURCES[source]() if made.startswith(name)]
    for maker in makers[part::num_parts]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield from maker()


def selection(only: str) -> tuple[list[str], str]:
    """The sources and the beginning of a name in `only`: "layer norms" is ["layer"], "norms"; "" is everything."""
    source, _, name = only.partition(" ")
    return [source] if source else [], name


def describe(value: Any) -> str:
    """Shapes, strides and types, without values: equal where two releases make the same sample."""
    if isinstance(value, torch.Tensor):
        layout = value.layout if value.layout != torch.strided else value.stride() if not value.is_contiguous() else ""
        return f"{str(value.dtype)[6:]}{list(value.shape)}{layout}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {describe(v)}' for k, v in sorted(value.items(), key=str))}}}"
    if isinstance(value, (int, float, bool, str, type(None), torch.dtype)):
        return str(value)
    return type(value).__name__


def to_card(value: Any) -> Any:
    """`value` with every tensor as a leaf on the card."""

    def move(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
            return leaf
        return leaf.detach().to("cuda").requires_grad_(leaf.requires_grad)

    return tree_map(move, value)


def _operators() -> Iterator[Maker]:
    for size, lengths in SIZES.items():
        for op in invocations.op_db:
            yield op.full_name, lambda op=op, size=size, lengths=lengths: _of_operator(op, size, lengths)


def _of_operator(op: Any, size: str, lengths: tuple[int, int, int]) -> Iterator[Case]:
    for dtype in DTYPES:
        before = invocations.S, invocations.M, invocations.L
        invocations.S, invocations.M, invocations.L = lengths
        try:
            samples = _samples(op, dtype)
        except Exception:
            continue
        finally:
            invocations.S, invocations.M, invocations.L = before
        for index, sample in samples:
            yield Case(
                source="operator", name=op.full_name, dtype=str(dtype)[6:], size=size, index=index,
                signature=describe([sample.input, sample.args, sample.kwargs]),
                prepare=lambda op=op, sample=sample: _call(op, sample),
            )  # fmt: skip


def _samples(op: Any, dtype: torch.dtype) -> list[tuple[int, Any]]:
    """The first samples with their positions, without those that would fill the host's memory."""
    _seed()
    needs_grad = dtype.is_floating_point and op.supports_autograd
    samples = op.sample_inputs("cpu", dtype, requires_grad=needs_grad)
    return [(i, s) for i, s in enumerate(islice(samples, MAX_SAMPLES)) if _num_bytes(s) <= MAX_SAMPLE_BYTES]


def _num_bytes(sample: Any) -> int:
    leaves = tree_leaves((sample.input, sample.args, sample.kwargs))
    return sum(leaf.nbytes for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided)


def _call(op: Any, sample: Any) -> Callable[[], Any]:
    input, args, kwargs = to_card(sample.input), to_card(sample.args), to_card(sample.kwargs)
    kwargs |= {"device": "cuda"} if "device" in kwargs else {}
    return lambda: op(input, *args, **kwargs)


def _modules() -> Iterator[Maker]:
    for info in module_db:
        for training in (True, False):
            yield info.name, lambda info=info, training=training: _of_module(info, training)


def _of_module(info: Any, training: bool) -> Iterator[Case]:
    for dtype in (torch.float32, torch.float16):
        try:
            _seed()
            inputs = info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=training, training=training
            )[:MAX_SAMPLES]
        except Exception:
            continue
        for index, each in enumerate(inputs):
            if each.forward_input is None:
                continue
            made, given = each.constructor_input, each.forward_input
            yield Case(
                source="module", name=info.name, dtype=str(dtype)[6:], size="train" if training else "eval",
                index=index, signature=describe([made.args, made.kwargs, given.args, given.kwargs]),
                prepare=lambda info=info, each=each, dtype=dtype, training=training: _module_call(
                    info, each, dtype, training
                ),
            )  # fmt: skip


def _module_call(info: Any, each: Any, dtype: torch.dtype, training: bool) -> Callable[[], Any]:
    _seed()
    module = info.module_cls(*each.constructor_input.args, **each.constructor_input.kwargs)
    module = module.to("cuda", dtype).train(training)
    args, kwargs = to_card(each.forward_input.args), to_card(each.forward_input.kwargs)
    return lambda: module(*args, **kwargs)


def _optimizers() -> Iterator[Maker]:
    for info in optim_db:
        for implementation in ("default", "foreach", "fused", "forloop"):
            yield (
                info.optim_cls.__name__,
                lambda info=info, implementation=implementation: _of_optimizer(info, implementation),
            )


def _of_optimizer(info: Any, implementation: str) -> Iterator[Case]:
    flags = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}, "forloop": {"foreach": False}}
    for index, given in enumerate(info.optim_inputs_func(device="cuda")):
        yield Case(
            source="optimizer", name=info.optim_cls.__name__, dtype="float32", size=implementation, index=index,
            signature=describe(given.kwargs),
            prepare=lambda info=info, given=given, extra=flags[implementation]: _optimizer_call(info, given, extra),
        )  # fmt: skip


def _optimizer_call(info: Any, given: Any, extra: dict) -> Callable[[], Any]:
    """Two steps over parameters of several sizes: the first makes the state."""
    shapes = [(64, 128), (256, 256), (512, 512)] + ([(128,)] if info.optim_cls.__name__ != "Muon" else [])
    parameters = [torch.nn.Parameter(torch.zeros(shape, device="cuda")) for shape in shapes]
    kwargs = {k: v.to("cuda") if isinstance(v, torch.Tensor) else v for k, v in given.kwargs.items()}
    optimizer = info.optim_cls(parameters, **kwargs, **extra)

    def two_steps() -> None:
        for _ in range(2):
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
            optimizer.step(lambda: 1.0) if info.step_requires_closure else optimizer.step()

    return two_steps


def _layers() -> Iterator[Maker]:
    for name, variants in LAYERS.items():
        yield name, lambda name=name, variants=variants: _of_layer(name, variants)


def _of_layer(name: str, variants: Callable) -> Iterator[Case]:
    for index, (signature, prepare) in enumerate(variants()):
        yield Case(source="layer", name=name, dtype="", size="", index=index, signature=signature, prepare=prepare)


def _seed() -> None:
    torch.manual_seed(0)
    random.seed(0)


SOURCES: dict[str, Callable[[], Iterator[Maker]]] = {
    "operator": _operators,
    "module": _modules,
    "optimizer": _optimizers,
    "layer": _layers,
}
