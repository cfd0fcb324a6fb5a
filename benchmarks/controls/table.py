"""The controls: pairs of training scripts and what the certificate has to say of them."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SCRIPTS = Path(__file__).parents[2] / "tests" / "scripts" / "controls"

Verdict = Literal["bitwise", "rounding", "noise", "different", "no answer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One pair: `original` and `changed` are commands, `what` the change in words, `seen` an issue about it.

    `needs` names what has to be installed beside torch. `exercised` and `not_exercised` are mechanisms that the
    certificate has to report so. A `fast` one is tested on every change.
    """

    name: str
    verdict: Verdict
    original: str
    changed: str
    what: str
    needs: str = ""
    seen: str = ""
    exercised: tuple[str, ...] = ()
    not_exercised: tuple[str, ...] = ()
    fast: bool = False

    @property
    def is_launched(self) -> bool:
        """Whether several processes run one of the commands."""
        return "torchrun" in self.original or "torchrun" in self.changed


def controls() -> list[Control]:
    """All of controls.toml."""
    rows = tomllib.loads((SCRIPTS / "controls.toml").read_text(encoding="utf-8"))["control"]
    lists = ("exercised", "not_exercised")
    return [Control(**{key: tuple(row[key]) if key in lists else row[key] for key in row}) for row in rows]


def words_of(command: str) -> tuple[str, ...]:
    """The words of `command`, with its script where it lies."""
    return tuple(str(SCRIPTS / word) if word.endswith(".py") else word for word in shlex.split(command))
