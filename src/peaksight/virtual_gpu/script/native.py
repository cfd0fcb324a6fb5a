"""Libraries in C and C++ that open files by name, without Python: OpenCV, HDF5 and Parquet get the redirected name."""

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.script.overlay import Overlay
from peaksight.virtual_gpu.script.path_functions import PathFunction, Redirected, logical_path
from peaksight.virtual_gpu.script.session import current, redirecting

_HDF5_READ_ONLY = 0


class NativeFunction(PathFunction):
    """A function or class that opens a file by name, if it is no address like `s3://`."""

    def __call__(self, path: Any, *args: Any, **options: Any) -> Any:
        """Call `real` with the path that holds what the run sees."""
        is_address = isinstance(path, str) and "://" in path
        return self.real(path, *args, **options) if is_address else super().__call__(path, *args, **options)

    def __getattr__(self, name: str) -> Any:
        """What hangs on a class, such as `cv2.VideoWriter.fourcc`."""
        return getattr(self.real, name)


class OpenHdf5(Redirected):
    """`h5py.h5f.open`, for reading or for changing a file that exists."""

    def __call__(self, name: Any, flags: int = 1, **options: Any) -> Any:
        """Open what the run sees, or the copy it changes."""
        overlay = current()
        if overlay is None:
            return self.real(name, flags, **options)
        with redirecting(name):
            logical = logical_path(overlay, name)
            located = overlay.backing(logical) if flags == _HDF5_READ_ONLY else overlay.writable(logical)
            return self.real(located.encode(), flags, **options)


def _reads(real: Callable[..., Any]) -> Redirected:
    return NativeFunction(real, Overlay.backing)


def _writes(real: Callable[..., Any]) -> Redirected:
    return NativeFunction(real, Overlay.writable)


_NATIVE: dict[str, dict[str, Callable[[Callable[..., Any]], Redirected]]] = {
    "cv2": {"imread": _reads, "imwrite": _writes, "VideoCapture": _reads, "VideoWriter": _writes},
    "h5py.h5f": {"open": OpenHdf5, "create": _writes},
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
