"""A program for test_probes: one of every statement, in functions that have probes."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nowhere import Nothing

COUNT = 0


def logged(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        print("calls", function.__name__)
        return function(*args, **kwargs)

    return run


@dataclasses.dataclass
class Config:
    """What to train."""

    steps: int = 3
    names: list[str] = dataclasses.field(default_factory=list)

    def train(self) -> Nothing:
        """Not annotated with anything that exists."""
        "a second text"
        return self.steps


class Base:
    def step(self):
        return "base"


class Derived(Base):
    """Has a class body with statements."""

    if COUNT == 0:
        kind = "zero"

    def step(self):
        return super().step() + __class__.__name__ + self.kind

    @property
    def epoch(self):
        """A property."""
        return 1

    def on_end(self):
        "Only a text."


@logged
def train_generator(count):
    """Yields."""
    try:
        for index in range(count):
            received = yield index
            if received:
                print("received", received)
        else:
            print("no break")
    finally:
        print("closed")


async def train_async():
    async with asyncio.Lock():
        await asyncio.sleep(0)
    return [value async for value in steps()]


async def steps():
    for value in (1, 2):
        yield value


def step_match(value):
    match value:
        case {"step": step, **rest} if step > 1:
            return "late", step, rest
        case [first, *_] | first:
            return "other", first


def run_loops():
    global COUNT
    total = 0

    def train_inner():
        nonlocal total
        total += 1

    while (total := total + 1) < 5:
        if total == 2:
            continue
        elif total == 3:
            train_inner()
        else:
            pass
    with open(__file__) as file, file:
        COUNT = len(file.readline())
    try:
        raise ValueError("once")
    except ValueError as error:
        print(error)
    else:
        print("never")
    del file
    return total, COUNT, sorted(locals())


def main():
    generator = train_generator(2)
    print(next(generator), generator.send("x"), list(generator))
    print(asyncio.run(train_async()), step_match({"step": 2, "a": 1}), step_match([7, 8]))
    print(run_loops(), Derived().step(), Derived().epoch, Config().train(), Config.train.__doc__, Derived.__doc__)
    print(inspect.getsource(step_match), main.__doc__, train_generator.__doc__, __doc__, Derived.on_end.__doc__)
    print("the end of main")
    train_fail(
        0,
        [1 / 1, 1 / 0],
    )


def train_fail(*args):
    print(args)


if __name__ == "__main__":
    main()
