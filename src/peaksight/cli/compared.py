"""What is to be compared: a capture file, or a command with its options."""

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from peaksight.cli.script_words import Words, script_command
from peaksight.cli.simulation_options import SimulationOptions, simulation_options
from peaksight.errors import ScriptError, UsageError
from peaksight.records import ScriptCommand

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A command to simulate: what follows the options of `peaksight run`, and those.

    `given` is all as typed, `command` what it starts.
    """

    given: str
    words: Words
    options: SimulationOptions
    command: ScriptCommand


def compared(text: str, shared: SimulationOptions) -> Path | Simulation:
    """What `text` names: a capture file, or a command as it is typed in a shell.

    Raises:
        UsageError, UnsupportedError: it is a command that `peaksight run` would refuse.
        ScriptError: there is no such file.
    """
    path = Path(text)
    if path.is_file() and _is_packed(path):
        return path
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"Can't read {text!r}: {error}; quote it as a shell would.", slug="nothing-to-run") from error
    simulation = simulation_of(words, shared)
    if not simulation.command.is_module and not os.path.exists(simulation.command.target):
        raise ScriptError(
            f"Can't run '{simulation.command.target}': there is no such file. Name a script, or the file of a "
            "`peaksight run --save`.",
            slug="cannot-run-script",
        )
    return simulation


def simulation_of(words: Words, shared: SimulationOptions) -> Simulation:
    """What to simulate for `words`: options in front of the script count for it alone, and before `shared` ones.

    Raises:
        UsageError, UnsupportedError: `peaksight run` would refuse them.
    """
    context = _command.make_context("peaksight run", list(words))
    given = {name: value for name, value in context.params.items() if _is_typed(context, name)}
    script, is_module = given.pop("words", ()), given.pop("is_module", False)
    options = replace(shared, **given)
    command = script_command(script, is_module=is_module)
    _ = options.room  # a card that is not known is refused before anything is simulated
    words_of_run = ("-m", *script) if is_module else script
    return Simulation(given=shlex.join(words), words=words_of_run, options=options, command=command)


@click.command(add_help_option=False, context_settings={"allow_interspersed_args": False})
@simulation_options
@click.option("-m", "is_module", is_flag=True)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="SCRIPT [ARGS]...")
def _command(**_: Any) -> None:
    """Read what `peaksight run` reads, less where its report goes."""


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP
