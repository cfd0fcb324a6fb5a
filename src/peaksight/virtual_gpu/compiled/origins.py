"""Which line and which module of the script a line of a written program comes from."""

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from peaksight.virtual_gpu.compiled.compiler import part
from peaksight.virtual_gpu.source_lines import Lines, SourceLines

_FRAME = re.compile(r'File "(.+)", line (\d+), in ')
# How Dynamo names the module that it traces and those inside: `L['self']._modules['blocks']._modules['0']`.
_SELF = re.compile(r"^L\['[^']*'\]")
_CHILD = re.compile(r"\._modules\['([^']*)'\]|\[(\d+)\]|\['([^']*)'\]")


class Origins:
    """The programs that were written, each with the operators of its lines."""

    def __init__(self, lines: SourceLines, running: Callable[[], str]) -> None:
        """`running` says which module is running."""
        self._lines, self._running = lines, running
        self._roots: dict[Any, str] = {}
        self._programs: dict[str, tuple[list[int], list[Lines]]] = {}

    def add(self, filename: str, line_map: list[tuple[int, Any]]) -> None:
        """A program is in `filename`, where the code of each node of `line_map` begins at the line before it."""
        # The backward of a graph is written in a backward pass, where no module is running.
        root = self._roots.setdefault(part("torch._guards").CompileContext.current_compile_id(), self._running())
        found = [(line, self._of(node, root)) for line, node in line_map]
        self._lines.of_program = self.at
        self._programs[filename] = [line for line, _ in found], [lines for _, lines in found]

    def at(self, filename: str | None, line: int) -> Lines | None:
        """Where line `line` of the program in `filename` comes from, None if it is none or nobody knows."""
        program = self._programs.get(filename) if filename else None
        position = bisect_right(program[0], line) if program else 0
        return program[1][position - 1] if program and position else None

    def _of(self, node: Any, root: str) -> Lines:
        """Without a line of the person's where the module is a library's."""
        own, library = "", ""
        for filename, line in reversed(_FRAME.findall(getattr(node, "stack_trace", None) or "")):
            if self._lines.is_own(filename):
                own = f"{self._lines.name_of(filename)}:{line}"
                break
            library = library or f"{self._lines.name_of(filename)}:{line}"
        return Lines(own, library, False, _module_of(node, root))


def _module_of(node: Any, root: str) -> str:
    """The path of the module behind `root`, where tracing began."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    path = next((str(entry[0]) for entry in reversed(list(stack.values()))), "")
    names = _CHILD.sub(lambda match: "." + next(filter(None, match.groups())), _SELF.sub("", path))
    return root + names if names.startswith(".") else root
