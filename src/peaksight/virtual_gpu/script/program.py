"""Finding what a command names: a file, a directory or archive with a `__main__.py`, or a module, as Python would."""

import builtins
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from peaksight.errors import ScriptError
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.source_kinds import is_archive, why_not_python

# Compiles the source of a file in another way than Python's, or does not (None).
Compiler = Callable[[bytes, str], CodeType | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What runs as `__main__`: its file, its `sys.argv[0]`, and how it was found if it is not just a file."""

    file: str
    argv0: str
    spec: ModuleSpec | None = None

    def make_module(self) -> ModuleType:
        """A fresh `__main__` with the names that Python gives it."""
        module = ModuleType("__main__")
        vars(module).update(
            __file__=self.file,
            __builtins__=builtins,
            __annotations__={},
            __spec__=self.spec,
            __loader__=self.spec.loader if self.spec else SourceFileLoader("__main__", self.file),
            __package__=self.spec.parent if self.spec else None,
            __cached__=self.spec.cached if self.spec else None,
        )
        return module

    def compile(self, compiler: Compiler | None = None) -> CodeType:
        """The code, by `compiler` unless that gives None; a SyntaxError is the script's own."""
        loader: Any = self.spec.loader if self.spec else SourceFileLoader("__main__", self.file)
        source = loader.get_data(self.file)
        code = compiler(source, self.file) if compiler else None
        return code or compile(source, self.file, "exec", dont_inherit=True)


def search_directory(command: ScriptCommand) -> str:
    """What `sys.path[0]` is for `command`."""
    if command.is_module:
        return os.getcwd()
    if _holds_main(command.target):
        return os.path.abspath(command.target)
    return os.path.dirname(os.path.realpath(command.target))


def source_directory(command: ScriptCommand) -> str:
    """Where the person's own code is: of an installed program or module its package, else beside the script."""
    if command.is_module:
        module = command.target
    elif command.target.endswith((".py", ".pyw")) or os.path.isdir(command.target):
        return os.path.dirname(os.path.abspath(command.target))
    else:
        module = _module_of_program(os.path.basename(command.target))
    return _package_directory(module.partition(".")[0]) or os.getcwd()


def _module_of_program(name: str) -> str:
    """The module that the console script `name` calls, empty if it is none."""
    return next((entry.module for entry in entry_points(group="console_scripts", name=name)), "")


def _package_directory(name: str) -> str | None:
    """The directory of the package `name`, None for one below the working directory, a module, or none."""
    if not name or os.path.exists(name) or os.path.exists(f"{name}.py"):
        return None
    spec = _find_spec(name)
    return next(iter(spec.submodule_search_locations or ()), None) if spec is not None else None


def find_program(command: ScriptCommand) -> Program:
    """Find the file of `command`, with `search_directory` on the path; ScriptError says what is missing."""
    if command.is_module:
        return _find_module(command.target)
    if _holds_main(command.target):
        return _find_main_in(command.target)
    if not os.path.exists(command.target):
        raise _cannot_run(command.target, "there is no such file. Give the path of a script, or -m and a module.")
    if cause := why_not_python(command.target):
        raise _cannot_run(command.target, cause)
    return Program(file=os.path.join(os.getcwd(), command.target), argv0=command.target)


def _holds_main(path: str) -> bool:
    return os.path.isdir(path) or is_archive(path)


def _find_main_in(path: str) -> Program:
    spec = PathFinder.find_spec("__main__", [os.path.abspath(path)])
    if spec is None or spec.origin is None:
        kind = "a directory" if os.path.isdir(path) else "an archive"
        raise _cannot_run(path, f"it is {kind} without a __main__.py. Give the path of a script in it.")
    return Program(file=spec.origin, argv0=path, spec=spec)


def _find_module(name: str) -> Program:
    spec = _find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_spec(f"{name}.__main__")
        if spec is None:
            raise _cannot_run(f"-m {name}", "it is a package without a __main__.py. Name a module in it.")
    if spec is None:
        raise _cannot_run(f"-m {name}", "there is no such module. Start where `python -m` finds it.")
    if not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
        raise _cannot_run(f"-m {name}", "it is not Python source. Name a module that is a .py file.")
    return Program(file=spec.origin, argv0=spec.origin, spec=spec)


def _find_spec(name: str) -> ModuleSpec | None:
    """The spec of `name`, None if it or a parent is missing; errors of a parent's own code pass."""
    try:
        return find_spec(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def _cannot_run(target: str, cause: str) -> ScriptError:
    return ScriptError(f"Can't run '{target}': {cause}", slug="cannot-run-script")
