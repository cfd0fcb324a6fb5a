"""The metadata of an optimised HLO module: which operation and which line each instruction comes from."""

import os
import re
from pathlib import Path

from peaksight.jax.source_lines import is_library, is_of_tools

_SECTION = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)\b")
_FILE = re.compile(r'(\d+) "(.*)"')
_LOCATION = re.compile(r"(\d+) \{file_name_id=(\d+) function_name_id=\d+ line=(\d+)")
_FRAME = re.compile(r"(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?")
_COMPUTATION = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_FRAME_ID = re.compile(r"stack_frame_id=(\d+)")
_PARAMETER = re.compile(r" parameter\((\d+)\)")
_CALLS = re.compile(r"(?:calls|body|to_apply)=%?([\w.\-]+)")
_OPERANDS = re.compile(r"%([\w.\-]+)")
# What moves or bundles values and says less than what made them.
_BUNDLES = ("while", "arg_tuple", "tuple", "copy", "bitcast")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")
_MAX_STEPS = 12


class Hlo:
    """One module as text, read once. `aliases` says which output is in the memory of which argument."""

    def __init__(self, path: Path) -> None:
        """Read the file at `path`."""
        self.aliases: dict[int, int] = {}
        self._files: dict[int, str] = {}
        self._locations: dict[int, tuple[int, int]] = {}
        self._frames: dict[int, tuple[int, int]] = {}
        self._origins: dict[str, tuple[str, int]] = {}
        self._operands: dict[str, list[str]] = {}
        self._parameters: dict[str, int] = {}
        self._called: dict[str, str] = {}
        self._roots: dict[str, str] = {}
        with path.open(encoding="utf-8") as lines:
            self._read(lines)
        self._number_parents()

    def origin(self, name: str) -> tuple[str, str, int]:
        """The operation's path and the person's line of instruction `name`, else of what it is made of.

        The last is the number of the argument that it is a copy of, -1 for none.
        """
        seen = {name}
        waiting = [name]
        while waiting and len(seen) < _MAX_STEPS:
            each = waiting.pop(0)
            op_name, frame = self._origins.get(each, ("", 0))
            if "/" in op_name or frame:
                return op_name, self._line(frame), -1
            if each in self._parameters:
                return "", "", self._parameters[each]
            inner = self._roots.get(self._called.get(each, ""))
            following = [*([inner] if inner else []), *self._operands.get(each, ())]
            waiting += [other for other in following if other not in seen]
            seen |= set(following)
        return self._origins.get(name, ("", 0))[0], "", -1

    def says(self, name: str) -> tuple[bool, bool, str]:
        """How much the metadata of `name` tells, for choosing between values that share their place."""
        op_name, frame = self._origins.get(name, ("", 0))
        return bool(op_name) and not name.startswith(_BUNDLES), bool(frame), name

    def _read(self, lines: object) -> None:
        section = computation = ""
        is_entry = False
        for line in lines:  # type: ignore[attr-defined]
            if line.startswith("HloModule"):
                header = line.partition("input_output_alias={")[2].partition("entry_computation_layout")[0]
                self.aliases = {int(out or 0): int(given) for out, given in _ALIAS.findall(header)}
            elif match := _SECTION.match(line):
                section = match[1]
            elif line[:1] in "%E" and (match := _COMPUTATION.match(line)):
                section, computation, is_entry = "", match[1], line.startswith("ENTRY")
            elif section:
                self._read_table(section, line)
            elif match := _INSTRUCTION.match(line):
                self._read_instruction(match[2], line[match.end() :])
                if is_entry and (number := _PARAMETER.search(line)):
                    self._parameters[match[2]] = int(number[1])
                if match[1]:
                    self._roots[computation] = match[2]

    def _read_table(self, section: str, line: str) -> None:
        if section == "FileNames" and (match := _FILE.match(line)):
            self._files[int(match[1])] = match[2]
        elif section == "FileLocations" and (match := _LOCATION.match(line)):
            self._locations[int(match[1])] = int(match[2]), int(match[3])
        elif section == "StackFrames" and (match := _FRAME.match(line)):
            self._frames[int(match[1])] = int(match[2]), int(match[3] or 0)

    def _read_instruction(self, name: str, rest: str) -> None:
        body, _, metadata = rest.partition("metadata={")
        op_name, frame = _OP_NAME.search(metadata), _FRAME_ID.search(metadata)
        self._origins[name] = op_name[1] if op_name else "", int(frame[1]) if frame else 0
        self._operands[name] = _OPERANDS.findall(body)[:4]
        if called := _CALLS.search(body):
            self._called[name] = called[1]

    def _number_parents(self) -> None:
        """Releases of XLA print the parent of a frame as its number plus one: a frame is then its own parent."""
        if any(parent == frame for frame, (_, parent) in self._frames.items()):
            self._frames = {frame: (place, max(parent - 1, 0)) for frame, (place, parent) in self._frames.items()}

    def _line(self, frame: int) -> str:
        """The innermost line outside of libraries that stack frame `frame` passes through."""
        innermost = ""
        for _ in range(64):
            location, parent = self._frames.get(frame, (0, 0))
            file_id, line = self._locations.get(location, (0, 0))
            file = self._files.get(file_id, "")
            if file and not is_library(file):
                return f"{os.path.basename(file)}:{line}"
            if file and not innermost and not is_of_tools(file):
                innermost = f"{os.path.basename(file)}:{line}"
            if parent in (0, frame):
                break
            frame = parent
        return innermost
