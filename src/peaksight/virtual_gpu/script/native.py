"""Libraries in C and C++ that open files by name, without Python: OpenCV, HDF5 and Parquet get the redirected name."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import PathFunction, Redirected

_PATH_KEYWORDS = ("filename", "name", "path", "where", "source")


class NativeFunction(PathFunction):
    """A function or class that opens a file by name, if it is no address like `s3://`."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call `real` with the path that holds what the run sees."""
        if not args:
            args = tuple(options.pop(name) for name in _PATH_KEYWORDS if name in options)
        is_address = bool(args) and isinstance(args[0], str) and "://" in args[0]
        return self.real(*args, **options) if is_address or not args else self._call(*args, **options)

    def __getattr__(self, name: str) -> Any:
        """What hangs on a class, such as `cv2.VideoWriter.fourcc`."""
        return getattr(self.real, name)

    def _call(self, path: Any, *args: Any, **options: Any) -> Any:
        return super().__call__(path, *args, **options)


class NativeOpen(NativeFunction):
    """One that opens for reading or for writing, as its second argument says."""

    def __init__(self, real: Callable[..., Any], *, reading: Sequence[Any], default: Any) -> None:
        """Stand for `real`, whose mode is `default` if not given; those in `reading` change nothing."""
        super().__init__(real, Overlay.backing)
        self._reading = reading
        self._default = default
        self._write = NativeFunction(real, Overlay.writable)

    def _call(self, path: Any, *args: Any, **options: Any) -> Any:
        mode = [*args, *(options[name] for name in ("mode", "flags") if name in options), self._default][0]
        return (super()._call if mode in self._reading else self._write)(path, *args, **options)


def _reads(real: Callable[..., Any]) -> Redirected:
    return NativeFunction(real, Overlay.backing)


def _writes(real: Callable[..., Any]) -> Redirected:
    return NativeFunction(real, partial(Overlay.writable, contents=False))


_NATIVE: dict[str, dict[str, Callable[[Callable[..., Any]], Redirected]]] = {
    "cv2": {"imread": _reads, "imwrite": _writes, "VideoCapture": _reads, "VideoWriter": _writes},
    "h5py.h5f": {"open": partial(NativeOpen, reading=[0], default=1), "create": _writes},
    "pyarrow": {"OSFile": partial(NativeOpen, reading=["r", "rb"], default="r")},
    "pyarrow.parquet": {"ParquetFile": _reads, "read_table": _reads, "ParquetWriter": _writes},
    "pyarrow.parquet.core": {"ParquetFile": _reads, "ParquetWriter": _writes},
}


def redirect_native(patches: Patches) -> None:
    """Redirect the libraries that are loaded, and the others when the run imports them."""
    for name in _NATIVE.keys() & sys.modules.keys():
        _redirect(sys.modules[name], patches)
    finder = _NativeFinder(patches)
    sys.meta_path.insert(0, finder)
    patches.callback(sys.meta_path.remove, finder)


def _redirect(module: ModuleType, patches: Patches) -> None:
    for name, redirected in _NATIVE[module.__name__].items():
        real = getattr(module, name, None)
        if real is not None and not isinstance(real, Redirected):
            patches.set(module, name, redirected(real))


class _NativeFinder:
    """Finds the modules in the table as the other finders do, and redirects them when they are loaded."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _NATIVE:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            self._redirect_after(spec.loader)
        return spec

    def _redirect_after(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _redirect(sys.modules[module.__name__], self._patches)

        loader.exec_module = exec_module
