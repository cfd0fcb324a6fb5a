"""What is alive while the kernels of a graph run in a given order."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peaksight.jax.fusion import ELEMENTWISE, MOVES, UPDATES, Kernel, kernels_of
from peaksight.jax.jaxpr_graph import Graph, Node, Value
from peaksight.jax.scheduling import orders_of

# Kernels that write into an operand which is read for the last time; XLA gives every other one memory of its own.
IN_PLACE = UPDATES | {"scan", "while"}


@dataclass(frozen=True, slots=True)
class Moment:
    """The fullest moment of a graph: its `bytes`, the `node` that runs then, and what is `alive`, with bytes.

    Of a graph inside a node the `carried` values are among those alive: they are in the buffers of the node.
    """

    bytes: int = 0
    node: Node | None = None
    alive: tuple[tuple[Value, int], ...] = ()
    carried_bytes: int = 0


def fullest(graph: Graph, *, homes: Mapping[Value, Value]) -> Moment:
    """The fullest moment of `graph`, beside its inputs and constants, in the order that keeps it lowest.

    An output with one of `homes` is in the memory of that input.
    """
    kernels = kernels_of(graph)
    inner = {kernel: _of_bodies(kernel.node) for kernel in kernels if kernel.node.bodies}
    sweeps = (_Sweep(graph, order, inner, homes) for order in orders_of(kernels, graph))
    return min(sweeps, key=lambda sweep: sweep.peak_bytes).moment()


def _of_bodies(node: Node) -> Moment:
    return max((_of_body(body) for body in node.bodies), key=lambda moment: moment.bytes)


def _of_body(body: Graph) -> Moment:
    """That of a loop's body or of a branch, in the order of the program: fusions with several outputs decide there."""
    kernels = kernels_of(body)
    inner = {kernel: _of_bodies(kernel.node) for kernel in kernels if kernel.node.bodies}
    return _BodySweep(body, kernels, inner, body.homes).moment()


class _Sweep:
    """One run through kernels in one order."""

    def __init__(
        self,
        graph: Graph,
        kernels: Sequence[Kernel],
        inner: Mapping[Kernel, Moment],
        homes: Mapping[Value, Value],
    ) -> None:
        self._kernels, self._inner, self._homes = kernels, inner, homes
        self._outputs = {value.buffer for value in graph.outputs}
        self._last_read = {value: i for i, kernel in enumerate(kernels) for value in kernel.reads}
        self._dying: dict[int, list[Value]] = defaultdict(list)
        for value, i in self._last_read.items():
            self._dying[i].append(value)
        self.peak_bytes, self._peak_at = self._run(len(kernels), self._at_start())

    def _at_start(self) -> dict[Value, int]:
        return {}

    def _stays(self, value: Value) -> bool:
        """Whether `value` is there until the end."""
        return value in self._outputs

    def _size(self, value: Value, kernel: Kernel, i: int) -> int:
        """The bytes of its own that `value` takes."""
        return 0 if value in self._homes else value.bytes

    def moment(self) -> Moment:
        """The fullest moment, with what is alive."""
        alive = self._at_start()
        if self._peak_at < 0:
            return Moment(self.peak_bytes, None, tuple(alive.items()), sum(alive.values()))
        carried_bytes = sum(alive.values())
        self._run(self._peak_at, alive)
        kernel = self._kernels[self._peak_at]
        inside = self._inner.get(kernel)
        if inside is None or self._added(kernel) == 0:
            return Moment(self.peak_bytes, kernel.node, tuple(alive.items()), carried_bytes)
        carried = {value for body in kernel.node.bodies for value in self._carried(kernel.node, body)}
        around = tuple((value, size) for value, size in alive.items() if value not in carried)
        return Moment(self.peak_bytes, inside.node, (*around, *inside.alive), carried_bytes)

    @staticmethod
    def _carried(node: Node, body: Graph) -> list[Value]:
        return [write for write, output in zip(node.writes, body.outputs, strict=False) if output in body.homes]

    def _added(self, kernel: Kernel) -> int:
        inside = self._inner.get(kernel)
        return max(0, inside.bytes - inside.carried_bytes) if inside else 0

    def _run(self, last: int, alive: dict[Value, int]) -> tuple[int, int]:
        """Run until `last`, in the middle of which `alive` is left; returns the peak and where it is."""
        now = sum(alive.values())
        peak, peak_at = now, -1
        for i, kernel in enumerate(self._kernels[: last + 1]):
            given = self._reusable(kernel, i, alive)
            for value in kernel.writes:
                alive[value] = size = self._size(value, kernel, i)
                now += size
                if size and given[size]:
                    now -= alive.pop(given[size].pop())
            if now + self._added(kernel) > peak:
                peak, peak_at = now + self._added(kernel), i
            if i == last:
                break
            for value in (*self._dying[i], *(v for v in kernel.writes if v not in self._last_read)):
                if not self._stays(value):
                    now -= alive.pop(value, 0)
        return peak, peak_at

    def _reusable(self, kernel: Kernel, i: int, alive: dict[Value, int]) -> dict[int, list[Value]]:
        """Memory that is read for the last time, by its size."""
        given: dict[int, list[Value]] = defaultdict(list)
        if kernel.node.name in IN_PLACE or kernel.is_product:
            operands = {value.buffer for value in kernel.node.reads}
            for value in self._dying[i]:
                if value in operands and alive.get(value) and not self._stays(value):
                    given[alive[value]].append(value)
        return given


class _BodySweep(_Sweep):
    """A run through the body of a loop or a branch.

    Its carry is in buffers of the loop, which hold other values between the last read of what came and the birth of
    what goes. The other outputs are written into a buffer around, at once or from a temporary.
    """

    def _at_start(self) -> dict[Value, int]:
        return {home: home.bytes for home in self._homes.values()}

    def _stays(self, value: Value) -> bool:
        return value in self._homes or (value in self._homes.values() and value not in self._last_read)

    def _size(self, value: Value, kernel: Kernel, i: int) -> int:
        is_stored = value in self._outputs and value not in self._homes and value not in self._last_read
        return 0 if is_stored and kernel.node.name in ELEMENTWISE | MOVES else value.bytes
