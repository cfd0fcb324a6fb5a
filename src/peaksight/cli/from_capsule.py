"""What `fix --from CAPSULE` takes from a capsule: the command, the card and what was to be had of it, and the step."""

import shlex
from dataclasses import fields, replace
from pathlib import Path

from peaksight.cli.left_behind import expanded
from peaksight.cli.output import Output
from peaksight.cli.script_words import Words, script_command
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.diagnosis.capsules import others_bytes
from peaksight.errors import UsageError
from peaksight.gpus import find_card
from peaksight.postmortem.capsules import read_capsule
from peaksight.records import ScriptCommand
from peaksight.records.capsule import Capsule
from peaksight.records.plan_file import digest_of_script
from peaksight.units import format_bytes

# A run stops once it is steady; up to here it goes on to the step that failed (`training.stopping.MAX_STEPS`).
MAX_STEPS = 20
_STEADY_STEPS = 3
_SETTINGS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def from_capsule(
    path: Path, words: Words, options: SimulationOptions, *, is_module: bool, output: Output
) -> tuple[ScriptCommand, SimulationOptions]:
    """The command of the capsule at `path`, and `options` with what it tells where they were not given.

    `words` may repeat the command, with other arguments too.

    Raises:
        UsageError: the capsule is of another script, or of the script as it was before.
        CaptureFileError: it cannot be read.
    """
    capsule = _only(path)
    command = script_command(words, is_module=is_module) if words else _command(capsule)
    _check_script(command, capsule)
    told = _options(capsule)
    given = {field.name: getattr(options, field.name) for field in fields(options)}
    default = SimulationOptions()
    typed = {name: value for name, value in given.items() if value != getattr(default, name)}
    if "gpu" in typed:
        told.pop("memory", None)
    _say(capsule, told | typed, output)
    return _with_settings(command, capsule), replace(options, **(told | typed))


def _only(path: Path) -> Capsule:
    """The capsule at `path`, or the only one in it."""
    capsules = [each for each in expanded([path]) if ".capsule" in each.name] if path.is_dir() else [path]
    if len(capsules) != 1:
        raise UsageError(
            f"There are {len(capsules)} capsules in {path}: name the one to plan from, as `peaksight read {path}` "
            "shows it.",
            slug="which-capsule",
        )
    return read_capsule(capsules[0]).capsule


def _command(capsule: Capsule) -> ScriptCommand:
    """As it was typed; the script may be named from the directory in which it ran."""
    argv = capsule.run.process.argv
    command = script_command(argv[1:], is_module=True) if argv[:1] == ("-m",) else script_command(argv)
    there = Path(capsule.run.directory, command.target)
    if not command.is_module and not Path(command.target).is_file() and there.is_file():
        return replace(command, target=str(there))
    return command


def _check_script(command: ScriptCommand, capsule: Capsule) -> None:
    argv = capsule.run.process.argv
    target = next((word for word in argv if word != "-m"), "")
    again = f"Name the capsule of a run of it, or run {shlex.join(argv)} again under `peaksight watch`."
    if Path(target).name != Path(command.target).name or command.is_module is not (argv[:1] == ("-m",)):
        raise UsageError(
            f"The capsule {capsule.file} is of {target or 'no script'}, not of {command.target}. {again}",
            slug="capsule-script",
        )
    if command.is_module:
        return
    if not Path(command.target).is_file():
        raise UsageError(
            f"The script {command.target} of the capsule {capsule.file} is not here: run this in "
            f"{capsule.run.directory}, or name the script behind the capsule.",
            slug="capsule-script",
        )
    if capsule.run.script_digest not in ("", digest_of_script(command.target)):
        raise UsageError(
            f"{command.target} has changed since the capsule {capsule.file} was written: what failed is another "
            f"version. {again}",
            slug="capsule-script",
        )


def _options(capsule: Capsule) -> dict[str, str | int]:
    """The card, what others hold of it, the build, the ranks and the step, as options are called."""
    card, process, step = capsule.failure.card, capsule.run.process, capsule.failure.step
    told: dict[str, str | int] = {}
    if card.name:
        told["gpu"] = card.name
        if card.total_bytes is not None and card.total_bytes != find_card(card.name).total_bytes:
            told["memory"] = card.total_bytes
    if others := others_bytes(capsule):
        told["reserved_by_others"] = others
    if "+cu" in capsule.run.torch:
        told["torch"] = capsule.run.torch
    if process.world_size > 1:
        told |= {"ranks": process.world_size, "rank": str(process.rank)}
    if _STEADY_STEPS < step <= MAX_STEPS:
        told["steps"] = step
    return told


def _with_settings(command: ScriptCommand, capsule: Capsule) -> ScriptCommand:
    """`command` under the allocator's settings of the capsule, whatever this shell has."""
    told = dict.fromkeys(_SETTINGS) | {_SETTINGS[1]: capsule.run.settings or None}
    return replace(command, environment=tuple((dict(command.environment) | told).items()))


def _say(capsule: Capsule, told: dict[str, str | int], output: Output) -> None:
    """What is taken over, in a line, and where a capsule says more than is simulated."""
    parts = [f"{name.replace('_', ' ')} {_value(name, value)}" for name, value in told.items()]
    settings = [f"allocator settings {capsule.run.settings}"] if capsule.run.settings else []
    output.say(f"from {capsule.file}: {', '.join([*parts, *settings]) or 'the command alone'}")
    if capsule.failure.step > MAX_STEPS:
        output.say(
            f"it failed in step {capsule.failure.step}, and what is simulated are the first steps, until they are "
            "steady: what grows over many steps is not in it"
        )


def _value(name: str, value: str | int) -> str:
    return format_bytes(value) if name in ("memory", "reserved_by_others") and isinstance(value, int) else str(value)
