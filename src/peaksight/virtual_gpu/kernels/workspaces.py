"""Memory that kernels take from the caching allocator without returning it as a tensor.

Each rule names the source that it mirrors.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves

from peaksight.records import Role
from peaksight.units import MIB
from peaksight.virtual_gpu.approximations import Approximations
from peaksight.virtual_gpu.kernels import (
    attention_backward,
    attention_forward,
    batch_norm,
    convolution_workspaces,
    decompositions,
    detection,
    distances,
    embeddings,
    foreach,
    images,
    indexing,
    linalg,
    losses,
    matrix_products,
    norms,
    numbers,
    packing,
    pointwise,
    recurrent_cells,
    recurrent_kernels,
    reductions,
    scans,
    segments,
    selecting,
    softmax,
    sorting,
    sparse,
    spectral,
    sync_batch_norm,
)
from peaksight.virtual_gpu.kernels.cublas import GEMMS, CublasWorkspaces
from peaksight.virtual_gpu.kernels.known_operators import is_known
from peaksight.virtual_gpu.kernels.temporaries import (
    CUBLAS_HANDLE,
    EMPTY_CACHE,
    RESULTS,
    Dispensable,
    KernelCall,
    Result,
    Rule,
    Temporaries,
    num_places,
)
from peaksight.virtual_gpu.memory.births import Birth
from peaksight.virtual_gpu.memory.ledger import Ledger

aten = torch.ops.aten

# Operators whose kernels take memory that no rule prices yet: the slug under which they are listed.
UNPRICED = {
    aten.convolution.default: "convolution-workspace",
    aten.convolution_backward.default: "convolution-workspace",
    aten._linalg_eigh.default: "linalg-workspace",
    aten._linalg_svd.default: "linalg-workspace",
    aten._fft_c2c.default: "fft-workspace",
    aten._fft_c2r.default: "fft-workspace",
    aten._fft_r2c.default: "fft-workspace",
    aten.geqrf.default: "linalg-workspace",
    aten.linalg_eig.default: "linalg-workspace",
    aten.linalg_householder_product.default: "linalg-workspace",
    aten.linalg_ldl_factor_ex.default: "linalg-workspace",
    aten.linalg_lstsq.default: "linalg-workspace",
    aten.linalg_qr.default: "linalg-workspace",
    aten.ormqr.default: "linalg-workspace",
    aten.isin.Tensor_Tensor: "index-workspace",
    aten.mode.default: "index-workspace",
    aten.unique_consecutive.default: "index-workspace",
    aten.unique_dim.default: "index-workspace",
    aten._embedding_bag_backward.default: "index-workspace",
}
TEMPORARIES: dict[object, Rule] = (
    attention_backward.TEMPORARIES
    | attention_forward.TEMPORARIES
    | batch_norm.TEMPORARIES
    | convolution_workspaces.TEMPORARIES
    | detection.TEMPORARIES
    | decompositions.TEMPORARIES
    | distances.TEMPORARIES
    | embeddings.TEMPORARIES
    | foreach.TEMPORARIES
    | images.TEMPORARIES
    | indexing.TEMPORARIES
    | linalg.TEMPORARIES
    | losses.TEMPORARIES
    | matrix_products.TEMPORARIES
    | norms.TEMPORARIES
    | pointwise.TEMPORARIES
    | numbers.TEMPORARIES
    | packing.TEMPORARIES
    | recurrent_cells.TEMPORARIES
    | recurrent_kernels.TEMPORARIES
    | reductions.TEMPORARIES
    | scans.TEMPORARIES
    | segments.TEMPORARIES
    | selecting.TEMPORARIES
    | softmax.TEMPORARIES
    | sorting.TEMPORARIES
    | sparse.TEMPORARIES
    | spectral.TEMPORARIES
    | sync_batch_norm.TEMPORARIES
)
UNKNOWN = "unknown-operator"
# Operators whose rule gives the larger part, where this says so of a call.
PARTLY_PRICED: dict[Any, Callable[[KernelCall], bool]] = {
    **dict.fromkeys((aten.convolution.default, aten.convolution_backward.default), lambda call: True),
    **dict.fromkeys(spectral.TEMPORARIES, lambda call: not spectral.is_measured(call)),
}


@dataclass(slots=True)
class Workspaces:
    """Every hidden allocation that a rule knows."""

    ledger: Ledger
    cublas: CublasWorkspaces
    approximations: Approximations
    _tried: set[object] = field(default_factory=set)

    def take(self, call: KernelCall, in_backward: bool, note_results: Callable[[Any], None]) -> None:
        """An operator ran on the card: note its results, and take what its kernels take beside them.

        `note_results` takes all of the results, or some before the others.
        """
        pricing, call.tried = _pricing_of(call.func), self._tried
        temporaries = None if pricing.rule is None else pricing.rule(call)
        if not temporaries or not num_places(temporaries):
            note_results(call.out)
        if temporaries:
            self._run(temporaries, call, in_backward, note_results)
        elif pricing.is_gemm:
            self.cublas.before_returning(call.func, call.args, in_backward)
        is_unpriced = temporaries is None and not pricing.takes_nothing
        if is_unpriced or (pricing.is_partial is not None and pricing.is_partial(call)):
            self._note_unpriced(call)

    def _note_unpriced(self, call: KernelCall) -> None:
        slug = UNPRICED.get(call.func, UNKNOWN)
        at_most_bytes = most_unknown_bytes(call) if slug == UNKNOWN else None
        self.approximations.note(slug, call.func.name(), at_most_bytes=at_most_bytes)

    def _run(
        self, temporaries: Temporaries, call: KernelCall, in_backward: bool, note_results: Callable[[Any], None]
    ) -> None:
        """Take the blocks that live for the length of one kernel, and among them its results."""
        taken: list[tuple[int, Birth | None]] = []
        results = iter(_one_by_one(call.out, num_places(temporaries)))
        try:
            for size in temporaries:
                if size > 0:
                    taken.append((size, self._block(size, call.func.name())))
                elif size < 0:
                    self._give_back(_last_of(taken, -size))
                elif size is CUBLAS_HANDLE:
                    self.cublas.take(in_backward)
                elif size is RESULTS:
                    note_results(next(results))
                elif isinstance(size, Result):
                    note_results(call.out[size.position])
                elif size is EMPTY_CACHE:
                    self.ledger.empty_cache(by_script=False)
            self.cublas.before_returning(call.func, call.args, in_backward)
        finally:  # also when the card is full
            for _, birth in reversed(taken):
                self._give_back(birth)

    def _block(self, num_bytes: int, op: str) -> Birth | None:
        """A block of `num_bytes`; None for a dispensable one that the card has no room for."""
        take = self.ledger.attempt if isinstance(num_bytes, Dispensable) else self.ledger.allocate
        return take(int(num_bytes), op, Role.WORKSPACE)

    def _give_back(self, birth: Birth | None) -> None:
        if birth is not None:
            self.ledger.free(birth)


def most_unknown_bytes(call: KernelCall) -> int:
    """More than any operator took that was measured, but for convolutions, recurrent layers and linear algebra.

    In benchmarks/operators that is up to 26 MiB beside small tensors, and ten times the tensors themselves.
    """
    tensors = [leaf for leaf in tree_leaves((call.args, call.kwargs, call.out)) if isinstance(leaf, torch.Tensor)]
    return 32 * MIB + 16 * sum(tensor.numel() * tensor.itemsize for tensor in tensors)


class _Pricing(NamedTuple):
    """How an operator is priced: by a rule, which may give only the larger part of some calls, or as taking nothing.

    The workspace of cuBLAS, which products of matrices need beside that, is taken once.
    """

    rule: Rule | None
    is_partial: Callable[[KernelCall], bool] | None
    takes_nothing: bool
    is_gemm: bool


@cache
def _pricing_of(func: Any) -> _Pricing:
    rule = TEMPORARIES.get(func) or TEMPORARIES.get(func.name())
    takes_nothing = rule is None and func not in UNPRICED and is_known(func)
    return _Pricing(rule, PARTLY_PRICED.get(func), takes_nothing, func in GEMMS)


def _one_by_one(out: Any, num_parts: int) -> list[Any]:
    """What each of `num_parts` marks stands for: the next result, the last one for all."""
    parts = [result for result in out if result is not None] if num_parts > 1 else []
    return [*parts[: num_parts - 1], out]


def _last_of(taken: list[tuple[int, Birth | None]], num_bytes: int) -> Birth | None:
    position = max(index for index, (size, _) in enumerate(taken) if size == num_bytes)
    return taken.pop(position)[1]
