"""Reads what follows `peaksight run`: a script, a module or a program, and whatever people type in front of it."""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from peaksight.cli.launchers import LAUNCHER_MODULES, LAUNCHERS, Launch
from peaksight.cli.programs import find_program
from peaksight.errors import UnsupportedError, UsageError
from peaksight.records import ScriptCommand

Words = tuple[str, ...]

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?(\.exe)?$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Options of the interpreter that take a value; the others are single letters.
_WITH_VALUE = ("-W", "-X")
# `uv run` and its like, which start a program in the environment of a project.
_RUNNERS = ("uv", "poetry", "pdm", "pipenv", "rye", "pixi", "hatch", "conda", "mamba")
_REFUSED_LAUNCHERS = {"deepspeed", "horovodrun", "mpirun", "mpiexec", "srun", "composer", "colossalai"}
_REFUSED_MODULES = ("deepspeed.launcher", "horovod.runner", "composer.cli", "colossalai.cli")


def script_command(words: Words, *, is_module: bool = False) -> ScriptCommand:
    """The command that `words` name; `is_module` when `-m` came before them.

    Understood in front of a script: an interpreter with its options, which have no effect here (`python -u train.py`),
    variables (`env A=1`), `uv run` and its like, and the launchers of `LAUNCHERS`, which become rank 0 of their world.

    Raises:
        UsageError: nothing is left to run.
        UnsupportedError: it is another program, or a launcher that is not simulated.
    """
    return _module(words) if is_module else _program(words)


def _program(words: Words) -> ScriptCommand:
    """What a shell would start."""
    word, rest = _first(words)
    name = PurePath(word).name
    if assignment := _ASSIGNMENT.fullmatch(word):
        return _with_variables(_program(rest), {assignment[1]: assignment[2]})
    if word == sys.executable or _PYTHON.match(name):
        return _after_interpreter(rest)
    if name == "env":
        return _after_env(rest)
    if name in _RUNNERS and rest[:1] == ("run",):
        return _after_runner(name, rest[1:])
    if name in LAUNCHERS:
        return _launched(LAUNCHERS[name](rest))
    if name in _REFUSED_LAUNCHERS:
        raise _not_simulated(word, words)
    return ScriptCommand(target=find_program(word), args=rest)


def _module(words: Words) -> ScriptCommand:
    """What `python -m` would start."""
    name, rest = _first(words)
    if name in LAUNCHER_MODULES:
        return _launched(LAUNCHER_MODULES[name](rest))
    if name.startswith(_REFUSED_MODULES):
        raise _not_simulated(name, words)
    return ScriptCommand(target=name, args=rest, is_module=True)


def _first(words: Words) -> tuple[str, Words]:
    if not words:
        raise UsageError("Nothing to run: name a script, as in `peaksight run train.py`.", slug="nothing-to-run")
    return words[0], words[1:]


def _after_interpreter(words: Words) -> ScriptCommand:
    """What follows the interpreter's own options."""
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        if option == "-m":
            return _module(words)
        if option in ("-c", "-"):
            raise UsageError(f"Can't run `python {option}`: put the code into a file.", slug="nothing-to-run")
        if option in _WITH_VALUE:
            words = words[1:]
    target, args = _first(words)
    return ScriptCommand(target=target, args=args)


def _after_env(words: Words) -> ScriptCommand:
    """What follows `env`; assignments are read as everywhere."""
    if not words or not words[0].startswith("-"):
        return _program(words)
    option, words = words[0], words[1:]
    if option in ("-u", "--unset"):
        name, words = _first(words)
        return _with_variables(_after_env(words), {name: None})
    if option.startswith("--unset="):
        return _with_variables(_after_env(words), {option.partition("=")[2]: None})
    raise UsageError(f"Can't read `env {option}`: only variables to set and -u are understood.", slug="before-script")


def _after_runner(name: str, words: Words) -> ScriptCommand:
    """What follows `uv run` or its like."""
    if words[:1] in (("-m",), ("--module",)):
        return _module(words[1:])
    word, _ = _first(words)
    if word.startswith("-"):
        raise UsageError(
            f"Can't read `{name} run {word}`: its options choose an environment, and peaksight has to be in it. "
            f"Type them first, as in `{name} run {word} ... peaksight run train.py`.",
            slug="before-script",
        )
    return _program(words)


def _launched(launch: Launch) -> ScriptCommand:
    """Rank 0 of what a launcher starts."""
    if launch.is_module:
        command = _module(launch.words)
    elif launch.is_program:
        command = _program(launch.words)
    else:
        command = ScriptCommand(target=launch.words[0], args=launch.words[1:])
    return replace(
        _with_variables(command, launch.environment), processes=launch.processes, per_card=launch.is_per_card
    )


def _with_variables(command: ScriptCommand, variables: Mapping[str, str | None]) -> ScriptCommand:
    """What is nearer to the script counts."""
    return replace(command, environment=tuple({**variables, **dict(command.environment)}.items()))


def _not_simulated(launcher: str, words: Words) -> UnsupportedError:
    script = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
    instead = " ".join(words[script:]) if script is not None else "train.py ARGS"
    return UnsupportedError(
        f"Can't simulate a launch by {launcher!r}: it starts processes of its own kind. "
        f"For N ranks as torchrun starts them, type: peaksight run --ranks N {instead}",
        slug="launcher",
    )
