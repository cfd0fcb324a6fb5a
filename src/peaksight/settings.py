"""`[tool.peaksight]` in the pyproject.toml of a person's project: what they need not type."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from peaksight.errors import UsageError

TABLE = "tool.peaksight"
# Options of every command that simulates, by which a project names its card.
OF_A_SIMULATION = (
    "gpu",
    "gpus",
    "memory",
    "reserved-by-others",
    "ranks",
    "rank",
    "torch",
    "steps",
    "worst-batch",
)
# What a test may need, where its marker does not say.
BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the table of the file `path` says: `shared` for all commands, `of_commands` by the name of one."""

    path: Path
    shared: dict[str, Any]
    of_commands: dict[str, dict[str, Any]]

    def mistake(self, why: str) -> UsageError:
        """The error of a setting that makes no sense."""
        return UsageError(
            f"{self.path}: {why}, or go without its settings: `peaksight --isolated ...`.", slug="settings"
        )

    def check_key(self, key: str, known: Collection[str], table: str = TABLE) -> None:
        """Check that `table` may have `key`.

        Raises:
            UsageError: it is none of those `known`.
        """
        if key not in known:
            near = get_close_matches(key, known, n=1)
            way_out = f"did you mean {near[0]!r}? Write that" if near else f"take one of {', '.join(known)}"
            raise self.mistake(f"[{table}] has no key {key!r}: {way_out}")


def find_settings(directory: Path) -> Settings | None:
    """Those of the nearest pyproject.toml that has the table, in `directory` or above it.

    Raises:
        UsageError: the file cannot be read, or has keys that no command knows.
    """
    for folder in (directory, *directory.parents):
        path = folder / "pyproject.toml"
        if path.is_file() and (table := _table(path)) is not None:
            return _checked(path, table)
    return None


def _table(path: Path) -> dict[str, Any] | None:
    """The table, None where there is none; a file without it may be as broken as it likes."""
    text = path.read_text("utf-8", errors="replace")
    if TABLE not in text:
        return None
    try:
        found = tomllib.loads(text).get("tool", {}).get("peaksight")
    except tomllib.TOMLDecodeError as error:
        raise _without(path).mistake(f"this is no TOML ({error}): mend it") from error
    if found is not None and not isinstance(found, dict):
        raise _without(path).mistake(f"[{TABLE}] is no table: write its keys below that line")
    return found


def _without(path: Path) -> Settings:
    return Settings(path=path, shared={}, of_commands={})


def _checked(path: Path, table: dict[str, Any]) -> Settings:
    settings = Settings(
        path=path,
        shared={key: value for key, value in table.items() if not isinstance(value, dict)},
        of_commands={key: value for key, value in table.items() if isinstance(value, dict)},
    )
    for key in settings.shared:
        settings.check_key(key, (*OF_A_SIMULATION, BUDGET))
    return settings
