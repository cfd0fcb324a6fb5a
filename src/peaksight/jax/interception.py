"""Every operation of the script comes here: jitted functions are planned for the virtual card, others only counted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import finalize

import jax
import numpy as np
from jax._src import core

from peaksight.jax.arrays import VirtualArray
from peaksight.jax.entries import Entry, What
from peaksight.jax.execution import device_bytes, tensor_of
from peaksight.jax.following import FOLLOWED_SIZE, LOOPS, SMALL_BYTES, followed, known_of, size_of
from peaksight.jax.job import Job
from peaksight.jax.pmapped import Pmapped
from peaksight.jax.source_lines import user_line
from peaksight.jax.tracing import call_with, is_of_jax
from peaksight.records import Role

_JITTED = ("pjit", "jit")


class VirtualTrace(core.Trace):
    """The trace in which the script runs in place of JAX's `EvalTrace`."""

    def __init__(self, job: Job) -> None:
        """Nothing has run."""
        super().__init__()
        self._job = job
        self._entries: dict[int, Entry] = {}
        self._is_over = False
        self.pmapped = Pmapped()

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """The trace of this thread until the end of the block."""
        before = core.trace_ctx.trace
        core.trace_ctx.set_trace(self)
        try:
            yield
        finally:
            core.trace_ctx.set_trace(before)
            self._is_over = True

    # What JAX asks of a trace.

    def process_primitive(self, primitive: Any, args: Sequence[Any], params: dict[str, Any], /) -> Any:
        """What `primitive` gives for `args`, on the virtual card."""
        for arg in args:
            if isinstance(arg, VirtualArray):
                arg.check()
        given = [known_of(arg) for arg in args]
        with core.set_current_trace(self):
            if primitive.name in _JITTED and not is_of_jax(params["jaxpr"]):
                return self._call(params, args)
            if primitive.name == "device_put":
                return self._device_put(primitive, args, params)
            if primitive.name in LOOPS:
                return self._loop(primitive, args, params)
        if not any(isinstance(arg, VirtualArray) for arg in given) and self._is_small(primitive, given, params):
            with core.set_current_trace(core.eval_trace):
                return primitive.bind(*given, **params)
        with core.set_current_trace(self):
            return self._eager(primitive, args, params)

    def process_custom_jvp_call(self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **_: Any) -> Any:
        """Run the function itself: nothing is differentiated here."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **_: Any) -> Any:
        """Run the function itself: nothing is differentiated here."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def stage_value(self, val: Any) -> Any:
        """An array made of a value of the host."""
        if isinstance(val, jax.Array):
            return val
        if size_of(core.typeof(val)) <= SMALL_BYTES:
            with core.set_current_trace(core.eval_trace):
                return core.eval_trace.stage_value(val)
        return self._array(core.typeof(val), Role.INPUT, "device_put")

    # What arrays ask of their trace.

    def release(self, array: VirtualArray) -> None:
        """The array is gone."""
        entry, array.entry = array.entry, None
        if entry is not None and not self._is_over:
            self._job.ledger.free(entry)

    def read(self, array: VirtualArray, kind: str) -> None:
        """The script reads a number that nobody computed."""
        self._job.notes.note("jax-values", kind)

    def restored(self, shape: Any) -> Any:
        """An array on the card for a leaf of a checkpoint."""
        aval = core.ShapedArray(shape.shape, shape.dtype)
        return self._array(aval, Role.PARAMETER, "restore", getattr(shape, "sharding", None))

    def made_like(self, array: Any, dtype: Any) -> VirtualArray | None:
        """What `jnp.zeros_like` makes of an array over several cards: as JAX has it, one that lies as that does."""
        if not isinstance(array, VirtualArray) or array.placed is None or core.trace_ctx.trace is not self:
            return None
        aval = core.ShapedArray(array.aval.shape, array.aval.dtype if dtype is None else np.dtype(dtype))
        return self._array(aval, Role.UNKNOWN, "full_like", array.placed)

    # Operations.

    def _call(self, params: dict[str, Any], args: Sequence[Any]) -> list[Any]:
        call = call_with(params, [getattr(arg, "sharding", None) for arg in args])
        return self._run(self.pmapped.named(call), args)

    def _run(self, call: Any, args: Sequence[Any]) -> list[Any]:
        """Call a program; its donated arguments are gone afterwards."""
        written, call = call, self._job.edited(call)
        arguments = self._job.arguments(call)
        self._job.ledger.at = user_line()
        entries, lent = [], []
        for arg, (size, what) in zip(args, arguments, strict=True):
            entry = self._entry(arg, size, what)
            if entry is None:
                entry = self._job.ledger.allocate(size, what)
                lent.append(entry)
            elif call is not written:
                entry = self._made_smaller(arg, entry, size, what)
            entries.append(entry)
        outputs = self._job.call(call, entries)
        known = followed(written.closed, args)
        for arg, donated in zip(args, call.donated, strict=True):
            if donated and isinstance(arg, VirtualArray):
                arg.donate()
        for entry in lent:
            if entry not in outputs.entries:
                self._job.ledger.free(entry)
        # Where the plan spreads arrays the script does not know of it: its functions are traced as without the plan.
        shardings = outputs.shardings if call is written else (None,) * len(outputs.entries)
        return [
            VirtualArray(self, aval, entry, sharding, value)
            for aval, entry, sharding, value in zip(
                written.closed.out_avals, outputs.entries, shardings, known, strict=True
            )
        ]

    def _entry(self, arg: Any, size: int, what: What) -> Entry | None:
        """The memory of an argument on the card, named by this use; of a small array from its first on."""
        if isinstance(arg, VirtualArray):
            entry = arg.holder.entry
            if entry is not None:
                self._job.ledger.becomes(entry, what)
            return entry
        if not isinstance(arg, jax.Array):
            return None
        entry = self._entries.get(id(arg))
        if entry is None:
            entry = self._entries[id(arg)] = self._job.ledger.allocate(size, what)
            finalize(arg, self._forget, id(arg))
        return entry

    def _made_smaller(self, arg: Any, entry: Entry, size: int, what: What) -> Entry:
        """The memory of `arg` as the plan has it: a type or a part of it that takes less, copied on its first use."""
        if entry.birth.requested_bytes <= size:
            return entry
        smaller = self._job.ledger.allocate(size, what)
        self._job.ledger.free(entry)
        if isinstance(arg, VirtualArray):
            arg.entry = smaller
        else:
            self._entries[id(arg)] = smaller
        return smaller

    def _forget(self, identity: int) -> None:
        entry = self._entries.pop(identity, None)
        if entry is not None and not self._is_over:
            self._job.ledger.free(entry)

    def _loop(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """A loop or the like outside of jit: JAX compiles it as a program of its own."""
        avals = [core.typeof(arg) for arg in args]
        with core.set_current_trace(core.eval_trace):
            closed = jax.make_jaxpr(lambda *values: primitive.bind(*values, **params))(*map(_struct, avals))
        call = self._job.plain_call(closed, primitive.name, [getattr(arg, "sharding", None) for arg in args])
        outputs = self._run(call, args)
        return outputs if primitive.multiple_results else outputs[0]

    def _device_put(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Copies to the card; an array that is there already, on the same devices, is only passed on."""
        results = []
        for arg, device in zip(args, params["devices"], strict=True):
            sharding = device if isinstance(device, jax.sharding.NamedSharding) else getattr(arg, "placed", None)
            if isinstance(arg, VirtualArray) and (sharding is None or sharding == arg.placed):
                results.append(arg)
            elif isinstance(arg, VirtualArray) and arg.placed is None and sharding and sharding.is_fully_replicated:
                results.append(arg.in_its_memory(arg.aval, sharding))
            elif sharding is None and not isinstance(arg, VirtualArray) and size_of(core.typeof(arg)) <= SMALL_BYTES:
                single = {**params, "devices": (device,), "srcs": params["srcs"][:1]}
                single["copy_semantics"] = params["copy_semantics"][:1]
                with core.set_current_trace(core.eval_trace):
                    results += primitive.bind(arg, **single)
            else:
                results.append(self._array(core.typeof(arg), Role.INPUT, "device_put", sharding, _value(arg)))
        return results

    def _eager(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        outputs = self._abstract(primitive, args, params)
        self._job.notes.note("jax-eager", primitive.name)
        sharding = next((arg.placed for arg in args if isinstance(arg, VirtualArray) and arg.placed), None)
        kept = [sharding if sharding is not None and _can_hold(sharding, aval) else None for aval in outputs]
        name = params.get("name", primitive.name)
        arrays = [self._array(aval, Role.UNKNOWN, name, place) for aval, place in zip(outputs, kept, strict=True)]
        return arrays if primitive.multiple_results else arrays[0]

    def _abstract(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        if primitive.name in _JITTED:
            return list(params["jaxpr"].out_avals)
        found, _ = primitive.abstract_eval(*(core.typeof(arg) for arg in args), **params)
        return list(found) if primitive.multiple_results else [found]

    def _is_small(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> bool:
        return sum(map(size_of, self._abstract(primitive, args, params))) <= SMALL_BYTES

    def _array(self, aval: Any, role: Role, op: str, sharding: Any = None, known: Any = None) -> VirtualArray:
        what = What(role=role, tensor=tensor_of(aval), op=str(op), source=user_line())
        entry = self._job.ledger.allocate(device_bytes(aval, sharding), what)
        return VirtualArray(self, aval, entry, sharding, known)


def _value(arg: Any) -> Any:
    """The numbers of a small value of the host."""
    known = known_of(arg)
    return known if not isinstance(known, VirtualArray) and np.size(known) <= FOLLOWED_SIZE else None


def _struct(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _can_hold(sharding: Any, aval: Any) -> bool:
    """Whether an array of this shape can lie like that."""
    try:
        sharding.shard_shape(aval.shape)
    except Exception:
        return False
    return True
