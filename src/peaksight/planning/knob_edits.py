"""Changes of a plan made where a script's settings, or its flags, are written."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from peaksight.extras import is_installed
from peaksight.planning.edited_files import EditedFiles
from peaksight.planning.knob_files import changed_flags, in_launch, in_settings, launch_files, settings_files
from peaksight.planning.knob_values import Edit, given_as
from peaksight.planning.situation import Situation
from peaksight.planning.variants import with_flag
from peaksight.records.plan import Change

# What everybody gives TrainingArguments.
_REQUIRED = "output_dir"


@dataclass(frozen=True, slots=True)
class Place:
    """The `lines` of `file` at which something was edited."""

    file: str = ""
    lines: tuple[int, ...] = ()

    @property
    def at(self) -> str:
        """`run.sh:3, run.sh:4`."""
        return ", ".join(f"{self.file}:{line}" for line in self.lines)


def edit_knobs(files: EditedFiles, change: Change, situation: Situation) -> Place:
    """Make `change` in the file that the command names for TrainingArguments, or where its flags are written."""
    knobs = _knobs(change, situation)
    if not knobs or situation.command.is_module:
        return Place()
    arguments = situation.command.args
    for path in settings_files(arguments):
        if name := files.name_of(path):
            is_json = path.suffix == ".json"
            lines = files.edit_text(name, partial(in_settings, knobs=knobs, is_json=is_json, anchor=_REQUIRED))
            if lines:
                return Place(name, tuple(lines))
    place = _edit_launch(files, knobs)
    if place.lines:
        files.arguments = _with_knobs(files.arguments or arguments, knobs)
    return place


def edit_flags(files: EditedFiles, situation: Situation, after: tuple[str, ...]) -> Place:
    """Where the script is launched, the flags whose values are others in the arguments `after`."""
    knobs = {name: given_as(value) for name, value in changed_flags(situation.command.args, after)}
    return _edit_launch(files, knobs) if knobs and not situation.command.is_module else Place()


def _edit_launch(files: EditedFiles, knobs: Mapping[str, Edit]) -> Place:
    for path in launch_files(files.script.parent, files.script.name):
        lines = files.edit_text(path.name, partial(in_launch, script=files.script.name, knobs=knobs, anchor=_REQUIRED))
        if lines:
            return Place(path.name, tuple(lines))
    return Place()


def _knobs(change: Change, situation: Situation) -> Mapping[str, Edit]:
    if not is_installed("libcst"):
        return {}
    from peaksight.planning.call_edits import ARGUMENTS, call_edits

    ways = (edits[0] for edits in call_edits(change, situation) if len(edits) == 1)
    return next((edit.arguments for edit in ways if edit.names is ARGUMENTS), {})


def _with_knobs(arguments: tuple[str, ...], knobs: Mapping[str, Edit]) -> tuple[str, ...]:
    given = dict(changed_flags((), arguments))
    for name, edit in knobs.items():
        value = edit(given.get(name))
        if value is not None:
            arguments = with_flag(arguments, f"--{name}", value.strip('"'))
    return arguments
