"""New values of arguments, keys and flags, each made from the text of the value that there is."""

import re
from collections.abc import Callable

# From the text of a value, None where there is none, to that which it gets, None to leave it out.
Edit = Callable[[str | None], str | None]

_NAME = re.compile(r"[A-Za-z_][\w.]*")
_FRACTION = re.compile(r"0?\.\d+|1\.0*")


class CannotEditError(ValueError):
    """The value is not written so that it can be changed in place."""


def given_as(value: str) -> Edit:
    """`value`, whatever is there."""
    return lambda given: value


def left_out(given: str | None) -> None:
    """Nothing, whatever is there."""
    return None


def absent(given: str | None) -> None:
    """An argument that says the same in another way."""
    if given is not None:
        raise CannotEditError


def replaced(value: str) -> Edit:
    """`value` where the argument is there."""

    def edit(given: str | None) -> str:
        if given is None:
            raise CannotEditError
        return value

    return edit


def in_place_of(before: str, value: str) -> Edit:
    """`value` where nothing or `before` is given."""

    def edit(given: str | None) -> str:
        if given is not None and given.strip("\"'") != before.strip('"'):
            raise CannotEditError
        return value

    return edit


def divided(parts: int) -> Edit:
    """A number, or a name of one, divided by `parts`; CannotEditError where there is none."""

    def edit(given: str | None) -> str:
        if given and given.isdecimal() and int(given) % parts == 0:
            return str(int(given) // parts)
        if given and _NAME.fullmatch(given):
            return f"{given} // {parts}"
        raise CannotEditError

    return edit


def multiplied(parts: int) -> Edit:
    """A number, or a name of one, times `parts`; 1 where there is none."""

    def edit(given: str | None) -> str:
        if given is None or given.isdecimal():
            return str(int(given or 1) * parts)
        if _NAME.fullmatch(given):
            return f"{given} * {parts}"
        raise CannotEditError

    return edit


def times(parts: int) -> Edit:
    """A number of batches times `parts`; a share of all, and none, stay."""

    def edit(given: str | None) -> str | None:
        if given is None or given == "None" or _FRACTION.fullmatch(given):
            return given
        return multiplied(parts)(given)

    return edit
