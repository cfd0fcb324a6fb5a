"""Values that a script gets from elsewhere, changed where they are written: in settings, and where it is launched.

A knob is named as the script knows it (`per_device_train_batch_size`), its `Edit` gives the new value. Everything else
in the text stays as it is, character by character.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

from peaksight.planning.knob_values import CannotEditError, Edit

Knobs = Mapping[str, Edit]
# From a text to that with all knobs changed, and the lines at which they are.
Edited = tuple[str, list[int]]

_SETTINGS = {".yaml", ".yml", ".json"}
_LAUNCHERS = ("*.sh", "*.bash", "*.slurm", "*.sbatch", "Dockerfile*", "Makefile", "*.mk")
_MAX_BYTES = 100_000
# A line with those that continue it.
_COMMAND = re.compile(r"(?:[^\n]*\\\n)*[^\n]+")
# What comes before a value, and the value, with its quotes where JSON has them.
_YAML_KEY = r"""^[ \t]*(KEY[ \t]*:[ \t]+)([^\s#]+)"""
_JSON_KEY = r"""("KEY"[ \t]*:[ \t]*)("[^"\n]*"|[^\s,}\]]+)"""
_FLAG = r"""(--KEY(?:=|(?:\s|\\\n)+|["']\s*,\s*["']))["']?([^\s"'\\]+)"""
_ASSIGNMENT = r"""^\s*((?:export[ ])?KEY=)["']?([^\s"'#;]+)"""
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


def settings_files(arguments: tuple[str, ...]) -> list[Path]:
    """Those that the command names, as `config.yaml` or `--config=config.yaml`."""
    paths = [Path(word.rpartition("=")[2]) for word in arguments]
    return [path for path in paths if path.suffix in _SETTINGS and _is_small(path)]


def launch_files(folder: Path, script: str) -> list[Path]:
    """Those in `folder` that name the `script`."""
    named = (path for path in sorted(folder.iterdir()) if any(fnmatch(path.name, pattern) for pattern in _LAUNCHERS))
    return [path for path in named if _is_small(path) and script in path.read_text("utf-8", errors="replace")]


def in_settings(text: str, knobs: Knobs, *, is_json: bool, anchor: str = "") -> Edited:
    """Keys of YAML or JSON, each in the text once; one that is not there comes before the first one that is.

    Where there is none of them, it comes before the key `anchor`.

    Raises:
        CannotEditError: there is none of them, one is there several times, or its value cannot be changed so.
    """
    pattern = _JSON_KEY if is_json else _YAML_KEY

    def find(name: str) -> list[re.Match[str]]:
        return list(re.finditer(pattern.replace("KEY", re.escape(name)), text, re.MULTILINE))

    def added(before: re.Match[str], name: str, value: str) -> str:
        begin = text[text.rfind("\n", 0, before.start(1)) + 1 : before.start(1)]
        space = f"\n{begin}" if not begin.strip() else " "
        return f'"{name}": {value},{space}' if is_json else f"{name}: {value}{space}"

    changed = _changed(text, knobs, anchor, find, added, json.dumps if is_json else _in_yaml)
    if is_json:
        _check_json(changed[0])
    return changed


def in_launch(text: str, script: str, knobs: Knobs, *, anchor: str = "") -> Edited:
    """Flags behind the name of the `script` in its one command; a flag that is a variable of the file is set there.

    Raises:
        CannotEditError: as for settings, or there are several such commands.
    """
    commands = [match for match in _COMMAND.finditer(text) if _names(match[0], script)]
    if len(commands) != 1:
        raise CannotEditError
    begin, end = commands[0].start() + commands[0][0].index(script), commands[0].end()

    def find(name: str) -> list[re.Match[str]]:
        flag = re.compile(_FLAG.replace("KEY", re.escape(name)))
        found = list(flag.finditer(text, begin, end))
        variable = _VARIABLE.fullmatch(found[0][2]) if len(found) == 1 else None
        if variable is None:
            return found
        return list(re.finditer(_ASSIGNMENT.replace("KEY", variable[1]), text, re.MULTILINE))

    def added(before: re.Match[str], name: str, value: str) -> str:
        if not before[1].startswith("--"):
            raise CannotEditError  # the first is a variable, which is set elsewhere
        if before[1].endswith(("'", '"')) or "," in before[1]:
            return f'--{name}", "{value}", "'
        return f"--{name}{'=' if before[1].endswith('=') else ' '}{value} "

    return _changed(text, knobs, anchor, find, added, str)


def _changed(
    text: str,
    knobs: Knobs,
    anchor: str,
    find: Callable[[str], list[re.Match[str]]],
    added: Callable[[re.Match[str], str, str], str],
    in_words: Callable[[object], str],
) -> Edited:
    found = {name: find(name) for name in knobs}
    first = next((matches[0] for matches in (*found.values(), find(anchor) if anchor else []) if matches), None)
    if first is None or any(len(matches) > 1 for matches in found.values()):
        raise CannotEditError
    places: list[tuple[int, int, str]] = []
    for name, edit in knobs.items():
        match = found[name][0] if found[name] else None
        value = edit(match[2].strip("\"'") if match else None)
        if value and " " in value:
            raise CannotEditError  # a formula, which only Python computes
        if match and value is not None:
            places.append((match.start(2), match.end(2), in_words(_plain(value))))
        elif value is not None:
            places.append((first.start(1), first.start(1), added(first, name, in_words(_plain(value)))))
    lines = sorted({text.count("\n", 0, start) + 1 for start, _, _ in places})
    for start, end, words in sorted(places, reverse=True):
        text = text[:start] + words + text[end:]
    return text, lines


def _plain(value: str) -> object:
    """What the text of a Python value is."""
    constants: dict[str, object] = {"True": True, "False": False, "None": None}
    if value in constants:
        return constants[value]
    return int(value) if value.isdecimal() else value.strip("\"'")


def _in_yaml(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _check_json(text: str) -> None:
    try:
        json.loads(text)
    except ValueError as error:
        raise CannotEditError from error


def _names(line: str, script: str) -> bool:
    is_named = re.search(rf"(?<![\w.-]){re.escape(script)}(?![\w.-])", line)
    return is_named is not None and not line.lstrip().startswith("#")


def _is_small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _MAX_BYTES


def changed_flags(before: tuple[str, ...], after: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Flags (without their dashes) whose value is another one in the arguments `after`."""
    old = dict(_flags(before))
    yield from ((name, value) for name, value in _flags(after) if old.get(name) != value)


def _flags(arguments: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for word, following in pairwise((*arguments, "")):
        name, is_given, value = word.partition("=")
        if name.startswith("--"):
            yield name[2:], value if is_given else "" if following.startswith("--") else following
