"""`max-autotune`: products and convolutions are tried on copies of their operands while the program is written.

Mirrors `AlgorithmSelectorCache` of torch/_inductor/select_algorithm.py: each operator of new shapes is timed once, with
random operands, a result and a buffer that flushes the cache, beside everything that is alive.

Limitations:
    Which kernel is fastest only a card could tell: cuBLAS's and cuDNN's are taken, which fuse nothing. A kernel that
    fails, for want of shared memory, may keep the copies of its trial until Python's collector runs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part
from peaksight.virtual_gpu.compiled.generated import cache_flush, empty_strided

SETTINGS = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise")
_SEARCHES = ("max_autotune", "max_autotune_gemm")

_Tensor = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


class ProductTrials:
    """The trials of one run."""

    def __init__(self) -> None:
        """None so far."""
        self._is_searching = False
        self._pending: list[tuple[_Tensor, ...]] = []
        self._done: set[tuple[Any, ...]] = set()

    def install(self, patches: Patches) -> None:
        """Notice what the compiler would try until `patches` is left."""
        selector = part("torch._inductor.select_algorithm").AlgorithmSelectorCache
        patches.set(selector, "__call__", self._selected(selector.__call__))

    @contextmanager
    def left_out(self) -> Iterator[None]:
        """The compiler tries nothing itself: what it would is noted, if its settings say so."""
        config = part("torch._inductor.config")
        self._is_searching = any(getattr(config, name) for name in _SEARCHES)
        try:
            with config.patch(dict.fromkeys(SETTINGS, False)):
                yield
        finally:
            self._is_searching = False

    def run(self) -> None:
        """Make what was noted, one trial after the other: the compiler is done, and its program is about to run."""
        pending, self._pending = self._pending, []
        for trial in pending:
            copies = [empty_strided(*tensor) for tensor in trial]
            copies.append(cache_flush())
            del copies

    def _selected(self, select: Callable[..., Any]) -> Callable[..., Any]:
        def selected(cache: Any, name: str, choices: Any, inputs: Any, layout: Any, *args: Any, **options: Any) -> Any:
            if self._is_searching:
                self._note(name, inputs, layout)
            return select(cache, name, choices, inputs, layout, *args, **options)

        return selected

    def _note(self, name: str, inputs: Any, layout: Any) -> None:
        hints = part("torch._inductor.virtualized").V.graph.sizevars.optimization_hints
        nodes = {node.get_name(): node for node in inputs}.values()  # an operand that is there twice is copied once
        shapes = [(node.get_size(), node.get_stride(), node.get_dtype()) for node in nodes]
        shapes.append((layout.size, layout.stride, layout.dtype))
        trial = tuple((tuple(hints(size)), tuple(hints(stride)), dtype) for size, stride, dtype in shapes)
        if (name, trial) not in self._done:
            self._done.add((name, trial))
            self._pending.append(trial)
