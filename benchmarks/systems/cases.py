"""What is known of each system: `cases/NAME.toml`. Nothing of peaksight is needed."""

import shlex
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SYSTEMS = HERE.parents[1] / "examples" / "systems"
PREDICTED, CERTIFICATES, MEASURED = (HERE / f"{name}.json" for name in ("predicted", "certificates", "measured"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run at full scale: `words` for the script, `options` for peaksight, and the rules of its true `cause`.

    `before`, `note` and `fixed` are in the table; others stand below it. `cause` is empty where nothing is to be found.
    One that is not `on_card` is too large for a card of its kind, or for the time there is.
    """

    words: str
    options: str = ""
    cause: tuple[str, ...] = ()
    on_card: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What a certificate compares: words for the script, at the small scale, and the verdict that is right.

    `launcher` stands before both scripts, as `torchrun --nproc-per-node 2`.
    """

    original: str
    changed: str
    verdict: str
    options: str = ""
    launcher: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One system; `card` is that of the note, of which `memory` is emulated, and `blamed` the rule of its cause."""

    name: str
    title: str
    card: str
    memory: str
    blamed: str
    note_says: str
    is_so: str
    runs: dict[str, Run]
    certificates: dict[str, Pair]

    @property
    def script(self) -> Path:
        """Its training script."""
        return SYSTEMS / self.name / "train.py"

    def argv(self, run: str) -> list[str]:
        """The script's arguments of one run."""
        return shlex.split(self.runs[run].words)


def case_of(name: str) -> Case:
    """The case of `cases/NAME.toml`."""
    facts: dict[str, Any] = tomllib.loads((HERE / "cases" / f"{name}.toml").read_text(encoding="utf-8"))
    runs = {key: Run(**run | {"cause": tuple(run.get("cause", ()))}) for key, run in facts.pop("runs").items()}
    pairs = {key: Pair(**pair) for key, pair in facts.pop("certificates", {}).items()}
    return Case(name=name, runs=runs, certificates=pairs, **facts)


def all_cases() -> list[Case]:
    """Every case, by name."""
    return [case_of(path.stem) for path in sorted((HERE / "cases").glob("*.toml"))]
