"""From a jaxpr to its graph, as XLA sees it: calls inlined, equal equations merged, what nobody reads left out."""

from collections.abc import Hashable, Sequence
from enum import Enum
from typing import Any

from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal

from peaksight.jax.jaxpr_graph import Graph, Node, Value, bytes_of
from peaksight.jax.private import scan_counts
from peaksight.jax.pruning import prune
from peaksight.jax.simplifying import simplify

REMATS = frozenset({"remat", "remat2", "checkpoint"})
# Calls whose body XLA inlines into the caller.
CALLS = REMATS | frozenset(
    {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_lin", "shard_map"}
)
# What gives its operand another shape, type of variance or name: no new buffer.
ALIASES = frozenset({"stop_gradient", "reshape", "squeeze", "expand_dims", "copy", "copy_p", "name", "pvary", "pcast"})
BARRIER = "optimization_barrier"


class Apart(Enum):
    """Whether what `jax.checkpoint` computes again is kept apart from what it repeats, as `prevent_cse` says or not."""

    AS_WRITTEN = "as written"
    ALWAYS = "always"
    NEVER = "never"


def graph_of(closed: ClosedJaxpr, *, apart: Apart = Apart.AS_WRITTEN) -> Graph:
    """The graph of a whole program."""
    inputs = [Value(var.aval, argument=number) for number, var in enumerate(closed.jaxpr.invars)]
    graph = _Builder(apart).graph(closed.jaxpr, inputs)
    simplify(graph)
    prune(graph)
    return graph


def called(eqn: JaxprEqn) -> Jaxpr | None:
    """The jaxpr that a call runs once on all its operands, None where the equation has none."""
    for value in eqn.params.values():
        jaxpr = value.jaxpr if isinstance(value, ClosedJaxpr) else value
        if isinstance(jaxpr, Jaxpr) and len(jaxpr.invars) == len(eqn.invars):
            return jaxpr
    return None


def is_recomputation(eqn: JaxprEqn) -> bool:
    """Whether this is the part of a `jax.checkpoint` that a backward pass runs."""
    return eqn.primitive.name in REMATS and bool(eqn.params.get("differentiated"))


def prevents_cse(eqn: JaxprEqn) -> bool:
    """What a `jax.checkpoint` says of merging: true for any of its operands."""
    value = eqn.params.get("prevent_cse")
    return any(value) if isinstance(value, tuple | list) else bool(value)


class _Builder:
    """Makes the nodes of one graph, and of equal equations one: XLA merges common subexpressions."""

    def __init__(self, apart: Apart) -> None:
        self._apart = apart
        self._nodes: list[Node] = []
        self._constants: list[Value] = []
        self._known: dict[Hashable, Sequence[Value]] = {}
        self._literals: dict[Hashable, Value] = {}
        self._layers: dict[Value, list[Value]] = {}

    def graph(self, jaxpr: Jaxpr, inputs: Sequence[Value], scope: str = "", num_stacked: int = 0) -> Graph:
        """The graph of `jaxpr` on `inputs`; the last `num_stacked` are stacks of what a loop's body reads one of."""
        first = len(inputs) - num_stacked
        stacked = zip(inputs[first:], jaxpr.invars[first:], strict=True)
        layers = [self._layer(stack, "counter", var.aval) for stack, var in stacked]
        outputs = self._inline(jaxpr, [*inputs[:first], *layers], scope)
        graph = Graph(list(inputs), outputs, self._nodes, self._constants)
        return graph

    def _inline(self, jaxpr: Jaxpr, inputs: Sequence[Value], scope: str) -> list[Value]:
        """Add the equations of `jaxpr`; returns its outputs."""
        env: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
        for var in jaxpr.constvars:
            env[var] = Value(var.aval)
            self._constants.append(env[var])
        for eqn in jaxpr.eqns:
            reads = [self._read(env, atom) for atom in eqn.invars]
            written = self._equation(eqn, reads, _joined(scope, str(eqn.source_info.name_stack)))
            env.update((v, value) for v, value in zip(eqn.outvars, written, strict=True) if type(v) is not DropVar)
        return [self._read(env, atom) for atom in jaxpr.outvars]

    def _read(self, env: dict[Any, Value], atom: Any) -> Value:
        if not isinstance(atom, Literal):
            return env[atom]
        return self._literals.setdefault((str(atom.val), str(atom.aval)), Value(None))

    def _equation(self, eqn: JaxprEqn, reads: list[Value], scope: str) -> Sequence[Value]:
        name, params = eqn.primitive.name, eqn.params
        if name in CALLS and (jaxpr := called(eqn)) is not None:
            if name == "shard_map":
                _split(reads, jaxpr)
            return self._inline(jaxpr, self._barrier(reads) if self._is_apart(eqn) else reads, scope)
        if name in ALIASES and reads[0].bytes == bytes_of(eqn.outvars[0].aval):
            return reads[:1]
        if name == BARRIER:
            return self._barrier(reads)
        if name == "scan" and params["length"] <= params["unroll"]:
            return self._unrolled(eqn, reads, scope)
        return self._node(eqn, reads, scope)

    def _is_apart(self, eqn: JaxprEqn) -> bool:
        if not is_recomputation(eqn) or self._apart is Apart.NEVER:
            return False
        return self._apart is Apart.ALWAYS or prevents_cse(eqn)

    def _node(self, eqn: JaxprEqn, reads: Sequence[Value], scope: str) -> Sequence[Value]:
        bodies = tuple(self._bodies(eqn, scope))
        key = None if bodies or eqn.effects else (eqn.primitive.name, tuple(reads), _hashable(eqn.params))
        if key is not None and key in self._known:
            return self._known[key]
        writes = [Value(var.aval, eqn, scope) for var in eqn.outvars]
        self._nodes.append(Node(eqn.primitive.name, tuple(reads), tuple(writes), eqn, bodies))
        if key is not None:
            self._known[key] = writes
        return writes

    def _barrier(self, reads: Sequence[Value]) -> Sequence[Value]:
        """Other names for `reads`, there when all of them are: what reads these is not merged with what read those."""
        writes = [value.renamed() for value in reads]
        self._nodes.append(Node(BARRIER, tuple(reads), tuple(writes)))
        return writes

    def _unrolled(self, eqn: JaxprEqn, reads: Sequence[Value], scope: str) -> Sequence[Value]:
        """A scan that takes all its steps at once is no loop."""
        params = eqn.params
        first_carry, num_carry = scan_counts(params)
        first_stack = first_carry + num_carry
        constants, carry, stacks = reads[:first_carry], reads[first_carry:first_stack], reads[first_stack:]
        body, steps = params["jaxpr"].jaxpr, range(params["length"])
        results: dict[int, Sequence[Value]] = {}
        for step in reversed(steps) if params["reverse"] else steps:
            avals = [var.aval for var in body.invars[first_stack:]]
            layers = [self._layer(stack, step, aval) for stack, aval in zip(stacks, avals, strict=True)]
            outputs = self._inline(body, [*constants, *carry, *layers], scope)
            carry, results[step] = outputs[:num_carry], outputs[num_carry:]
        columns = zip(*(results[step] for step in steps), strict=True)
        stacked = zip(columns, eqn.outvars[num_carry:], strict=True)
        return [*carry, *(self._stack(eqn, layers, var.aval, scope) for layers, var in stacked)]

    def _layer(self, stack: Value, step: Hashable, aval: Any) -> Value:
        """One of what `stack` has along its first axis; of a stack made here that is what it was made of."""
        if stack in self._layers:
            assert isinstance(step, int)
            return self._layers[stack][step]
        key = ("layer", stack, step)
        if key not in self._known:
            self._known[key] = [Value(aval, stack.eqn, stack.scope, stack.argument)]
            self._nodes.append(Node("dynamic_slice", (stack,), tuple(self._known[key])))
        return self._known[key][0]

    def _stack(self, eqn: JaxprEqn, layers: Sequence[Value], aval: Any, scope: str) -> Value:
        stack = Value(aval, eqn, scope)
        self._layers[stack] = list(layers)
        self._nodes.append(Node("concatenate", tuple(layers), (stack,)))
        return stack

    def _bodies(self, eqn: JaxprEqn, scope: str) -> list[Graph]:
        """The graphs that a loop or a branch runs, on inputs of their own."""
        params = eqn.params
        match eqn.primitive.name:
            case "scan":
                return [self._loop(params["jaxpr"].jaxpr, eqn.invars, *scan_counts(params), scope)]
            case "while":
                operands = eqn.invars[params["cond_nconsts"] :]
                num_carry = len(operands) - params["body_nconsts"]
                return [self._loop(params["body_jaxpr"].jaxpr, operands, params["body_nconsts"], num_carry, scope)]
            case "cond":
                return [self._inner(branch.jaxpr, eqn.invars[1:], 0, scope) for branch in params["branches"]]
        return []

    def _loop(self, body: Jaxpr, operands: Sequence[Any], num_constants: int, num_carry: int, scope: str) -> Graph:
        graph = self._inner(body, operands, len(operands) - num_constants - num_carry, scope)
        carry = graph.inputs[num_constants : num_constants + num_carry]
        pairs = zip(carry, graph.outputs[:num_carry], strict=True)
        graph.homes = {after: before for before, after in pairs if after is not before}
        return graph

    def _inner(self, body: Jaxpr, operands: Sequence[Any], num_stacked: int, scope: str) -> Graph:
        return _Builder(self._apart).graph(body, [Value(atom.aval) for atom in operands], scope, num_stacked)


def _split(values: Sequence[Value], jaxpr: Jaxpr) -> None:
    """Of what a `shard_map` takes, each device has the part that its body sees."""
    for value, var in zip(values, jaxpr.invars, strict=True):
        value.bytes = min(value.bytes, bytes_of(var.aval))


def _joined(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer and inner else outer or inner


def _hashable(params: dict[str, Any]) -> Hashable:
    key = tuple(params.items())
    try:
        hash(key)
    except TypeError:
        return str(params)
    return key
