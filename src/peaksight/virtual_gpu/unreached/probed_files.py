"""The person's files that have probes, from their source to the tree of a function."""

import ast
import os
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from functools import cached_property
from importlib.machinery import SourceFileLoader
from types import CodeType

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.source_lines import SourceLines
from peaksight.virtual_gpu.unreached.conditions import assigned
from peaksight.virtual_gpu.unreached.probes import Hits, compile_with_probes

Tree = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Function = ast.FunctionDef | ast.AsyncFunctionDef


class ProbedFile:
    """One file: its `tree` with the probes, and their `hits`."""

    def __init__(self, name: str, tree: ast.Module, hits: Hits) -> None:
        """`name` is what the report calls it."""
        self.name = name
        self.tree = tree
        self.hits = hits

    @cached_property
    def functions(self) -> dict[tuple[int, str], Function]:
        """The functions by first line, a decorator's if there is one, and name: what their code knows of them."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, Function))
        return {(min(each.lineno for each in [node, *node.decorator_list]), node.name): node for node in found}

    @cached_property
    def changing_attributes(self) -> set[str]:
        """The attributes that the functions assign, but for those that set an object up."""
        return assigned(node for node in self.functions.values() if node.name != "__init__")[1]


class ProbedFiles:
    """Gives the files below some directories probes as they are compiled, but for those of installed packages."""

    def __init__(self, directories: Iterable[str], lines: SourceLines) -> None:
        """`lines` names the files and knows which are the person's own."""
        self._roots = tuple({os.path.join(os.path.realpath(directory), "") for directory in directories})
        self._lines = lines
        self._files: dict[str, ProbedFile] = {}

    def install(self, patches: Patches) -> None:
        """Compile imported modules with probes until `patches` is left; nothing is read from or kept in caches."""
        get_code = SourceFileLoader.get_code

        def with_probes(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            probed = None
            with suppress(Exception):  # whatever is wrong with the file is for Python to say
                if self._is_probed(loader.path):
                    probed = self.compile(loader.get_data(loader.path), loader.path)
            return probed or get_code(loader, fullname)

        patches.set(SourceFileLoader, "get_code", with_probes)

    def compile(self, source: bytes, filename: str) -> CodeType | None:
        """The code of `source` with probes, None where that is not possible or the file is not to have any."""
        if not self._is_probed(filename):
            return None
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            code, tree, hits = compile_with_probes(source, filename)
            self._files[filename] = ProbedFile(self._lines.name_of(filename), tree, hits)
            return code
        return None

    def file_of(self, code: CodeType) -> ProbedFile | None:
        """The file of `code`, None if it has no probes."""
        return self._files.get(code.co_filename)

    def is_own(self, code: CodeType) -> bool:
        """Whether `code` is the person's, with probes or without."""
        return self._lines.is_own(code.co_filename)

    def tree_of(self, code: CodeType) -> Tree | None:
        """What `code` was compiled from: a function, or a whole file."""
        file = self.file_of(code)
        if file is None or code.co_name == "<module>":
            return file.tree if file else None
        return file.functions.get((code.co_firstlineno, code.co_name))

    @property
    def names(self) -> Set[str]:
        """The names of the files, as their modules have them."""
        return self._files.keys()

    def __iter__(self) -> Iterator[ProbedFile]:
        """Every file with probes, in the order in which they were compiled."""
        return iter(tuple(self._files.values()))

    def __bool__(self) -> bool:
        """Whether any file has probes."""
        return bool(self._files)

    def _is_probed(self, filename: str) -> bool:
        return os.path.realpath(filename).startswith(self._roots) and self._lines.is_own(filename)
