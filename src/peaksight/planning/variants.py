"""Other arguments for the script, as `--vary '--batch 8,4,2 --accum 1,2,4'` and its like name them."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from peaksight.errors import UsageError

_EXAMPLE = "as in --vary '--batch 8,4,2 --accum 1,2,4'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The script's own flags at one of their values each: `words` are what they read then, `arguments` are all."""

    words: str
    arguments: tuple[str, ...]


def variants_of(arguments: Sequence[str], texts: Iterable[str]) -> tuple[Variant, ...]:
    """What `texts` ask for in place of `arguments`, without what these already say, each once.

    The values of the flags of one text belong together: the first of each, the second of each.

    Raises:
        UsageError: a text names no flag, one without values, or as many values as another has not.
    """
    found = {}
    for text in texts:
        for choice in _choices(text):
            changed = tuple(arguments)
            for flag, value in choice.items():
                changed = with_flag(changed, flag, value)
            found[changed] = Variant(words=" ".join(_word(flag, value) for flag, value in choice.items()),
                                     arguments=changed)  # fmt: skip
    found.pop(tuple(arguments), None)
    return tuple(found.values())


def flag_and_values(text: str) -> tuple[str, list[str]]:
    """Of `--batch=2,4`, `--batch 2,4` or, for a flag, `batch=2,4`; with a dot it is a key, as in `data.batch=2,4`.

    Raises:
        UsageError: it names more than one, or no values.
    """
    flags = list(_flags(text))
    if len(flags) != 1:
        raise _without_values(text)
    (flag, values), *_ = flags
    if not all(values):
        raise _without_values(text)
    return (flag if flag.startswith("-") or "." in flag else f"--{flag}"), values


def with_flag(arguments: tuple[str, ...], flag: str, value: str) -> tuple[str, ...]:
    """`arguments` with `value` for `flag`: where they have it, else at their end."""
    for at in reversed(range(len(arguments))):
        if arguments[at] == flag and flag.startswith("-") and at + 1 < len(arguments):
            return (*arguments[: at + 1], value, *arguments[at + 2 :])
        if arguments[at].startswith(f"{flag}="):
            return (*arguments[:at], f"{flag}={value}", *arguments[at + 1 :])
    return (*arguments, *([flag, value] if flag.startswith("-") else [f"{flag}={value}"]))


def _word(flag: str, value: str) -> str:
    return f"{flag} {value}" if flag.startswith("-") else f"{flag}={value}"


def _choices(text: str) -> Iterator[Mapping[str, str]]:
    """The values of each flag of `text` that belong together."""
    values = dict(_flags(text))
    counts = {flag: len(each) for flag, each in values.items()}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{count} of {flag}" for flag, count in counts.items())
        raise UsageError(
            f"Can't vary {text!r}: there are {said}, and the first belong together, the second, and so on; "
            f"give as many of each, {_EXAMPLE}.",
            slug="vary-values",
        )
    for together in zip(*values.values(), strict=True):
        yield dict(zip(values, together, strict=True))


def _flags(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each flag (`--batch 8,4`, `--batch=8,4`, or `trainer.batch=8,4`) with its values."""
    words = shlex.split(text)
    if not words:
        raise _without_values(text)
    while words:
        flag, has_value, value = words.pop(0).partition("=")
        if not has_value:
            if not flag.startswith("-") or not words:
                raise _without_values(text)
            value = words.pop(0)
        yield flag, value.split(",")


def _without_values(text: str) -> UsageError:
    return UsageError(f"Can't vary {text!r}: name a flag of the script and its values, {_EXAMPLE}.", slug="vary-values")
