"""Finds the stand-ins when a script imports them, or asks which release is installed."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script.program import source_directory

# Of each package what names it in a script or a configuration, and the release whose source the stand-in follows.
PACKAGES = {"flash_attn": (re.compile(r"flash[_-]attn|flash_attention_2"), "2.8.3")}
STAND_INS = __name__.rpartition(".")[0]
_TEXTS = (".py", ".yaml", ".yml", ".json", ".toml", ".sh")
_MAX_FILES = 500
_ANY = DistributionFinder.Context()
_MAX_BYTES = 1 << 20


def install(patches: Patches, command: ScriptCommand, note: Callable[[str], None]) -> None:
    """Offer those that `command` names and this environment lacks until `patches` is left; `note` each that is used."""
    for name, (mention, release) in PACKAGES.items():
        if name not in sys.modules and find_spec(name) is None and any(map(mention.search, _texts(command))):
            finder = _Finder(name, release)
            sys.meta_path.insert(0, finder)  # else its files are found by the names of the package, and loaded again
            patches.callback(_forget, finder)
            change_modules(patches, {name: partial(_used, note, name)})


def _used(note: Callable[[str], None], package: str, module: ModuleType) -> None:
    note(package)


def _texts(command: ScriptCommand) -> Iterator[str]:
    """The arguments, and what is written beside the script."""
    yield from command.args
    files = (path for path in sorted(Path(source_directory(command)).glob("*")) if path.suffix in _TEXTS)
    for path, _ in zip(files, range(_MAX_FILES), strict=False):
        if path.is_file() and path.stat().st_size <= _MAX_BYTES:
            yield path.read_text(errors="replace")


def _forget(finder: "_Finder") -> None:
    """The next run in this process finds nothing of it."""
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] == finder.package]:
        del sys.modules[name]


class _Alias(Loader):
    """Loads a module of a stand-in by another name."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The stand-in's own, which is loaded then."""
        return import_module(f"{STAND_INS}.{spec.name}")

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


class _Finder(DistributionFinder):
    """Finds one package, whose modules are those of its stand-in."""

    def __init__(self, package: str, release: str) -> None:
        self.package = package
        self._release = release

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Those of the package that the stand-in has."""
        if name.partition(".")[0] != self.package or find_spec(f"{STAND_INS}.{name}") is None:
            return None
        return ModuleSpec(name, _Alias(), is_package=name == self.package)

    def find_distributions(self, context: Any = _ANY) -> Iterable[Distribution]:
        """Its release, where that or every one is asked for."""
        asked = None if context.name is None else re.sub(r"[-_.]+", "_", context.name).lower()
        return [_Release(self.package, self._release)] if asked in (None, self.package) else []


class _Release(Distribution):
    """What `importlib.metadata` says of a stand-in."""

    def __init__(self, package: str, release: str) -> None:
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {package.replace('_', '-')}\nVersion: {release}\n",
            "top_level.txt": f"{package}\n",
        }

    def read_text(self, filename: str) -> str | None:
        """One of the files of a `dist-info`."""
        return self._files.get(filename)

    def locate_file(self, path: str | PathLike[str]) -> Any:
        """Nowhere that matters: it lists no files."""
        return Path(__file__).parent / path
