"""The changes of a plan for a script under JAX: to its jitted functions as they are called, and to how they are traced.

`Change.kind` names one of `EDITS`, of `TRACING`, or the size of the pool, which is an environment variable.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

import jax

from peaksight.errors import PlanError
from peaksight.jax.compiling import Call
from peaksight.jax.edits import CastBefore, Donate, Edit, KeepApart, Spread
from peaksight.jax.policies import around_losses, in_place
from peaksight.jax.pool import POOL
from peaksight.records.plan import Change

Tell = Callable[[], None]

EDITS: Mapping[str, Callable[..., Edit]] = {
    "jax-donate": lambda program, arguments: Donate(program, tuple(arguments)),
    "jax-cast-before": CastBefore,
    "jax-prevent-cse": KeepApart,
    "jax-sharding": Spread,
}


def _policy(tell: Tell, policy: str) -> AbstractContextManager[None]:
    return in_place(getattr(jax.checkpoint_policies, policy), tell)


def _around_losses(tell: Tell, policy: str) -> AbstractContextManager[None]:
    return around_losses(getattr(jax.checkpoint_policies, policy), tell)


TRACING: Mapping[str, Callable[..., AbstractContextManager[None]]] = {
    "jax-remat-policy": _policy,
    "jax-checkpoint-loss": _around_losses,
}


class Changes:
    """`changes` made to one run, and whether each did something."""

    def __init__(self, changes: Sequence[Change] = ()) -> None:
        """Nothing was called yet; PlanError where there is no such kind of change, or it takes other parameters."""
        self._changes = tuple(changes)
        self._effects: Counter[str] = Counter()
        self._edits = [(each.kind, _made(EDITS[each.kind], each)) for each in changes if each.kind in EDITS]
        self._edited: dict[Any, tuple[Call, Call]] = {}
        for each in changes:
            if each.kind not in {*EDITS, *TRACING, POOL}:
                raise _cannot(f"this release knows no change of the kind {each.kind!r} under JAX")

    @property
    def edit(self) -> bool:
        """Whether any is of calls."""
        return bool(self._edits)

    def edited(self, call: Call) -> Call:
        """`call` with the changes, the same object for the same function."""
        if not self._edits:
            return call
        key = (id(call.closed), call.donated, tuple(map(str, call.shardings)))
        if key not in self._edited:
            # What is kept beside it is not collected, so that no other one has its `id`.
            self._edited[key] = call, self._changed(call)
        return self._edited[key][1]

    def _changed(self, call: Call) -> Call:
        for kind, edit in self._edits:
            after = edit(call)
            self._effects[kind] += after is not call
            call = after
        return call

    @contextmanager
    def traced(self) -> Iterator[None]:
        """Make those that change how functions are traced."""
        with ExitStack() as stack:
            for each in self._changes:
                if each.kind in TRACING:
                    stack.enter_context(_made(partial(TRACING[each.kind], partial(self._note, each.kind)), each))
            yield

    def _note(self, kind: str) -> None:
        self._effects[kind] += 1

    def without_effect(self) -> tuple[str, ...]:
        """The kinds of changes that did nothing."""
        kinds = dict.fromkeys(each.kind for each in self._changes if each.kind != POOL)
        return tuple(kind for kind in kinds if not self._effects[kind])


def _made(make: Callable[..., Any], change: Change) -> Any:
    try:
        return make(**change.parameters)
    except (TypeError, AttributeError) as error:
        raise _cannot(f"{change.kind} does not take these parameters ({error})") from error


def _cannot(why: str) -> PlanError:
    return PlanError(
        f"Can't apply the plan: {why}. Make the plan again with `peaksight fix --apply`.", slug="plan-change"
    )
