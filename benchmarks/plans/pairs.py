"""Scripts of benchmarks/truth on cards that are too small for them, and what an expert would try first."""

import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = HERE.parent / "truth" / "scripts"
PREDICTED = HERE / "predicted.json"
MEASURED = HERE / "measured.json"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A script with its arguments and what PyTorch may reserve; `tries` are arguments that are added to them.

    Of an option that comes twice the last one counts, so that a try replaces it.
    """

    name: str
    argv: list[str]
    limit_bytes: int
    vary: str
    tries: dict[str, list[str]]


def all_pairs() -> list[Pair]:
    """Those of pairs.json."""
    return [
        Pair(
            name=each["name"],
            argv=each["argv"].split(),
            limit_bytes=round(each["limit_gib"] * 2**30),
            vary=each.get("vary", ""),
            tries={name: words.split() for name, words in each["tries"].items()},
        )
        for each in json.loads((HERE / "pairs.json").read_text())
    ]
