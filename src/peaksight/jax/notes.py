"""What was not simulated exactly in a JAX run, each once: the report's *Not simulated* list."""

from collections import Counter

from peaksight.jax.compiling import Call
from peaksight.jax.convolutions import timing_bytes
from peaksight.jax.execution import Planned
from peaksight.jax.inlining import graph_of
from peaksight.records import Approximation
from peaksight.units import format_bytes

MAX_NAMES = 5
# The deviceless compile chooses some kernels without timing them, and the device's own compile then differs by so much.
AUTOTUNING_SHARE = 0.05
# The most by which the jaxpr alone said less than XLA plans, of the programs in docs/jax.md.
LIVENESS_SHARE = 0.15
_SHARES = {"jax-autotuning": AUTOTUNING_SHARE, "jax-convolutions": 0.0, "jax-liveness": LIVENESS_SHARE}
TEXTS = {
    "jax-autotuning": "kernels that XLA chooses by timing them on the card: some need scratch memory of their own",
    "jax-convolutions": "timing the convolutions of {names} before the first call takes up to {most} where the card "
    "has room: no need of training, but memory_stats() counts it",
    "jax-liveness": "no plan by XLA's compiler ({names}): memory from the jaxpr alone, in most cases within 15 %",
    "jax-values": "values that the script reads of arrays on the card, {times}: stand-ins were given (1.0, 1, False)",
    "jax-eager": "operations outside of jit, {times}: their results count, not what they need while they run",
    "jax-files": "arrays that would be written to or read from checkpoints, {times}: no file was touched",
}


class Notes:
    """Counts approximations by slug, and by what names."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: Counter[str] = Counter()
        self._names: dict[str, dict[str, None]] = {}
        self._timing_bytes = 0

    def note(self, slug: str, name: str = "") -> None:
        """`slug` happened."""
        assert slug in TEXTS
        self._counts[slug] += 1
        self._names.setdefault(slug, {}).setdefault(name)

    def planned(self, planned: Planned) -> None:
        """What the plan of a program leaves open."""
        if planned.without_compiler:
            self.note("jax-liveness", planned.without_compiler)
        else:
            self.note("jax-autotuning")
            self._note_convolutions(planned.call)

    def _note_convolutions(self, call: Call) -> None:
        if num_bytes := timing_bytes(graph_of(call.closed)):
            self.note("jax-convolutions", call.name)
            self._timing_bytes = max(self._timing_bytes, num_bytes)

    def approximations(self, peak_bytes: int) -> tuple[Approximation, ...]:
        """The list, for a run with this peak."""
        return tuple(self._approximation(slug, peak_bytes) for slug in TEXTS if slug in self._counts)

    def _approximation(self, slug: str, peak_bytes: int) -> Approximation:
        count = self._counts[slug]
        names = ", ".join(list(self._names[slug])[:MAX_NAMES])
        times, most = "once" if count == 1 else f"{count} times", format_bytes(self._timing_bytes)
        what = TEXTS[slug].format(times=times, names=names, most=most)
        at_most = int(_SHARES[slug] * peak_bytes) if slug in _SHARES else None
        return Approximation(slug=slug, what=what, bytes=None, at_most_bytes=at_most)
