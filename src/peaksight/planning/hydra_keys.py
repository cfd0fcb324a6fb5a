"""Where Hydra's configuration sets the keys that overrides of a command (`data.batch=4`) change."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_KEY = re.compile(r"^(\s*)([\w-]+)\s*:(?:\s|$)")
_DEFAULT = re.compile(r"^\s*-\s*(?:override\s+)?([\w/-]+)\s*:\s*([\w-]+)\s*(?:#.*)?$", re.MULTILINE)


def where_set(script: Path, before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """The lines (`conf/config.yaml:3`) of the keys whose overrides are others in the arguments `after` than `before`.

    They are looked for in the configuration that `@hydra.main` of the script names, and in the files of groups that its
    defaults choose; empty where none is found.
    """
    old, new = _overrides(before), _overrides(after)
    primary = _primary(script)
    if primary is None:
        return ""
    changed = (name for name, value in new.items() if old.get(name) != value)
    places = (_place(primary, name, new) for name in changed)
    return ", ".join(f"{path.relative_to(script.parent).as_posix()}:{line}" for path, line in filter(None, places))


def _overrides(arguments: tuple[str, ...]) -> dict[str, str]:
    pairs = (word.partition("=") for word in arguments if "=" in word and not word.startswith("-"))
    return {name.lstrip("+"): value for name, _, value in pairs}


def _primary(script: Path) -> Path | None:
    """The file that `@hydra.main(config_path=..., config_name=...)` names, below the folder of the script."""
    try:
        calls = [node for node in ast.walk(ast.parse(script.read_bytes())) if isinstance(node, ast.Call)]
    except (OSError, SyntaxError, ValueError):
        return None
    for call in calls:
        given = {each.arg: each.value.value for each in call.keywords if isinstance(each.value, ast.Constant)}
        folder, name = given.get("config_path"), given.get("config_name")
        if isinstance(folder, str) and isinstance(name, str) and ".." not in folder:
            path = script.parent / folder / f"{name.removesuffix('.yaml')}.yaml"
            return path if path.is_file() and path.is_relative_to(script.parent) else None
    return None


def _place(primary: Path, name: str, overrides: dict[str, str]) -> tuple[Path, int] | None:
    """The file and line of the key `name`: in the primary file, which counts for more, or in that of its group."""
    keys = name.split(".")
    for path, inner in ((primary, keys), *_groups(primary, keys, overrides)):
        line = _line_of(path.read_text("utf-8", errors="replace"), inner)
        if line:
            return path, line
    return None


def _groups(primary: Path, keys: list[str], overrides: dict[str, str]) -> Iterator[tuple[Path, list[str]]]:
    chosen = dict(_DEFAULT.findall(primary.read_text("utf-8", errors="replace"))) | overrides
    path = primary.parent / keys[0] / f"{chosen.get(keys[0], '')}.yaml"
    if len(keys) > 1 and path.is_file():
        yield path, keys[1:]


def _line_of(text: str, keys: list[str]) -> int:
    """The line of nested keys in YAML, 0 where they are not there."""
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if match := _KEY.match(line):
            above = [each for each in above if each[0] < len(match[1])] + [(len(match[1]), match[2])]
            if [key for _, key in above] == keys:
                return number
    return 0
