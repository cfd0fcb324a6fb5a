"""Evaluates a traced function otherwise: in float64 whatever it casts to, and with random bits of our own."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from peaksight.jax.inlining import CALLS
from peaksight.jax.private import scan_counts

Values = list[Any]
# What casts to a type, or says that numbers are no finer than one.
_CASTS = frozenset({"convert_element_type", "reduce_precision"})
# What looks at the bits of numbers of one type, or has code for that type alone.
_OF_ONE_TYPE = frozenset({"bitcast_convert_type", "random_gamma", "ffi_call", "custom_call", "pallas_call"})


class RandomBits:
    """Random bits that depend on which key it is, in the order in which keys are first used, and not on its numbers.

    Functions that differ in their keys alone draw the same with them; a key that is used again draws the same again.
    """

    def __init__(self) -> None:
        """No key was used."""
        self._keys: dict[tuple[bytes, Any], int] = {}

    def of(self, keys: Any, shape: tuple[int, ...], bit_width: int) -> Any:
        """Of each of `keys`, an array of random keys, unsigned numbers of `shape`; under `jax.jit` in program order."""
        whole = jax.ShapeDtypeStruct((*keys.shape, *shape), f"uint{bit_width}")

        def drawn(data: Any) -> Any:
            rows = np.asarray(data).reshape(math.prod(keys.shape), -1)
            return np.stack([self._draw(row.tobytes(), shape, whole.dtype) for row in rows]).reshape(whole.shape)

        return io_callback(drawn, whole, jax.random.key_data(keys), ordered=True)

    def _draw(self, key: bytes, shape: tuple[int, ...], dtype: Any) -> Any:
        kind = (shape, dtype.str)
        number = self._keys.setdefault((key, kind), sum(1 for _, known in self._keys if known == kind))
        return np.random.default_rng((number, *shape)).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


class Interpreter:
    """Evaluates jaxprs; with `bits` in place of what keys would give. All floating-point numbers are in float64."""

    def __init__(self, bits: RandomBits | None = None) -> None:
        """To be used under `jax.enable_x64(True)`, by `jax.jit` or at once."""
        self._bits = bits

    def run(self, closed: ClosedJaxpr, arguments: Sequence[Any]) -> Values:
        """The results of `closed`."""
        jaxpr = closed.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, map(widened, closed.consts), strict=True))
        values.update(zip(jaxpr.invars, map(widened, arguments), strict=True))

        def read(atom: Any) -> Any:
            return widened(np.asarray(atom.val, atom.aval.dtype)) if isinstance(atom, Literal) else values[atom]

        for eqn in jaxpr.eqns:
            values.update(zip(eqn.outvars, self._equation(eqn, [read(atom) for atom in eqn.invars]), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, eqn: JaxprEqn, given: Values) -> Values:
        name, params = eqn.primitive.name, eqn.params
        if name == "random_bits" and self._bits is not None:
            return [self._bits.of(given[0], params["shape"], params["bit_width"])]
        if name in CALLS and name != "shard_map" and (inner := next(_jaxprs(eqn), None)) is not None:
            return self.run(inner, given)
        match name:
            case "scan":
                return self._scan(params, given)
            case "while":
                return self._while(params, given)
            case "cond":
                branches = [partial(self._branch, branch) for branch in params["branches"]]
                return list(jax.lax.switch(given[0], branches, *given[1:]))
        return _bound(eqn, given)

    def _branch(self, branch: ClosedJaxpr, *given: Any) -> Values:
        return self.run(branch, given)

    def _scan(self, params: dict[str, Any], given: Values) -> Values:
        num_constants, num_carry = scan_counts(params)
        constants, carry = given[:num_constants], given[num_constants : num_constants + num_carry]

        def body(carry: Values, rows: Values) -> tuple[Values, Values]:
            returned = self.run(params["jaxpr"], [*constants, *carry, *rows])
            return returned[:num_carry], returned[num_carry:]

        stacks, options = given[num_constants + num_carry :], {key: params[key] for key in ("length", "reverse")}
        last, rows = jax.lax.scan(body, carry, stacks, **options)
        return [*last, *rows]

    def _while(self, params: dict[str, Any], given: Values) -> Values:
        first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]

        def goes_on(carry: Values) -> Any:
            return self.run(params["cond_jaxpr"], [*given[:first], *carry])[0]

        def body(carry: Values) -> Values:
            return self.run(params["body_jaxpr"], [*given[first:second], *carry])

        return list(jax.lax.while_loop(goes_on, body, given[second:]))


def widened(value: Any) -> Any:
    """`value` in float64 if it is a floating-point number or an array of them."""
    return jax.numpy.asarray(value).astype(np.float64) if _is_floating(getattr(value, "dtype", None)) else value


def _is_floating(dtype: Any) -> bool:
    return dtype is not None and jax.dtypes.issubdtype(dtype, np.floating)


def _jaxprs(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """What a call runs."""
    for value in eqn.params.values():
        if isinstance(value, ClosedJaxpr) and len(value.jaxpr.invars) == len(eqn.invars):
            yield value
        elif isinstance(value, Jaxpr) and len(value.invars) == len(eqn.invars):
            yield ClosedJaxpr(value, ())


def _bound(eqn: JaxprEqn, given: Values) -> Values:
    """The results of one operation, in float64 where it takes that."""
    name, params = eqn.primitive.name, eqn.params
    if name in _CASTS and _is_floating(eqn.outvars[0].aval.dtype):
        return [jax.numpy.asarray(given[0]).astype(np.float64)]
    if name not in _OF_ONE_TYPE:
        try:
            return _results(eqn, eqn.primitive.bind(*given, **{key: _wide(value) for key, value in params.items()}))
        except (TypeError, ValueError, NotImplementedError):
            pass
    narrow = [
        value.astype(atom.aval.dtype) if _is_floating(atom.aval.dtype) else value
        for value, atom in zip(given, eqn.invars, strict=True)
    ]
    return [widened(each) for each in _results(eqn, eqn.primitive.bind(*narrow, **params))]


def _wide(parameter: Any) -> Any:
    """A parameter that names a type, or how a product is rounded."""
    if isinstance(parameter, jax.lax.DotAlgorithm | jax.lax.DotAlgorithmPreset):
        return None
    is_type = isinstance(parameter, np.dtype) or (isinstance(parameter, type) and issubclass(parameter, np.generic))
    return np.dtype(np.float64) if is_type and _is_floating(parameter) else parameter


def _results(eqn: JaxprEqn, returned: Any) -> Values:
    return list(returned) if eqn.primitive.multiple_results else [returned]
