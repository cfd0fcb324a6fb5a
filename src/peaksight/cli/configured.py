"""Defaults of options from `[tool.peaksight]`."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import click
from click.core import ParameterSource

from peaksight.settings import BUDGET, OF_A_SIMULATION, TABLE, Settings

SIMULATING = ("run", "fix", "compare")


def defaults(settings: Settings, name: str, commands: Mapping[str, click.Command]) -> dict[str, Any]:
    """What options of the command `name` are where they are not given, as click's `default_map` has them.

    The table of every command is checked, whichever is run.

    Raises:
        UsageError: a key or a value that no option takes.
    """
    shared = {key: value for key, value in settings.shared.items() if key != BUDGET and name in SIMULATING}
    found = _values(settings, commands[name], shared)
    for each, table in settings.of_commands.items():
        settings.check_key(each, [*commands, *OF_A_SIMULATION, BUDGET])
        if each not in commands:
            raise settings.mistake(f"{each!r} in [{TABLE}] is a table: write `{each} = ` and its value")
        of_it = _values(settings, commands[each], table)
        found |= of_it if each == name else {}
    return found


def _values(settings: Settings, command: click.Command, table: Mapping[str, Any]) -> dict[str, Any]:
    """What `table` gives to parameters of `command`, by their names."""
    options = _options(command)
    for key in table:
        settings.check_key(key, options, f"{TABLE}.{command.name}")
    return {str(options[key].name): _value(settings, command, key, table[key]) for key in table}


def described(command: click.Command, settings: Settings, given: Mapping[str, Any]) -> str | None:
    """Which options of `command` are `given` in `settings`, as they would be typed; None where there are none."""
    words = [word for each in command.params if each.name in given for word in _typed(each, given[str(each.name)])]
    return f"From {settings.path}: {shlex.join(words)}" if words else None


def told() -> str | None:
    """The same of the command that runs now, without options that were given otherwise."""
    context = click.get_current_context(silent=True)
    settings = context.find_object(Settings) if context else None
    if context is None or settings is None:
        return None
    used = {
        name: value
        for name, value in (context.default_map or {}).items()
        if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
    }
    return described(context.command, settings, used)


def _typed(option: click.Parameter, value: Any) -> Iterator[str]:
    """`--gpu t4`; a flag alone, and nothing where it is off."""
    for each in value if isinstance(value, list) else [value]:
        if each is not False:
            yield option.opts[0]
        if not isinstance(each, bool):
            yield str(each)


def _options(command: click.Command) -> dict[str, click.Parameter]:
    """Those with a long name, by it: `head-room`."""
    named = ((option, name) for option in command.params for name in option.opts if name.startswith("--"))
    return {name.removeprefix("--"): option for option, name in named}


def _value(settings: Settings, command: click.Command, key: str, value: Any) -> Any:
    """`value`, if the option `key` takes it; paths are those from the folder of the file."""
    option = _options(command)[key]
    is_flag = isinstance(option, click.Option) and option.is_flag
    if isinstance(value, bool) != is_flag or isinstance(value, list) != option.multiple:
        raise settings.mistake(f"{key!r} cannot be {value!r}: give {_kind(option, is_flag)}")
    if isinstance(option.type, click.Path) and value != "-":
        value = str(settings.path.parent / str(value))
    try:
        option.type_cast_value(click.Context(command), value)
    except click.BadParameter as error:
        raise settings.mistake(f"{key!r} cannot be {value!r} ({error.message.rstrip('.')}): give another") from error
    return value


def _kind(option: click.Parameter, is_flag: bool) -> str:
    if is_flag:
        return "true or false"
    return "a list of values" if option.multiple else "one value"
