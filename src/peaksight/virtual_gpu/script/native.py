"""Libraries in C and C++ that open files by name, without Python: OpenCV, HDF5 and Parquet get the redirected name."""

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
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
    change_modules(patches, dict.fromkeys(_NATIVE, partial(_redirect, patches)))


def _redirect(patches: Patches, module: ModuleType) -> None:
    for name, redirected in _NATIVE[module.__name__].items():
        real = getattr(module, name, None)
        if real is not None and not isinstance(real, Redirected):
            patches.set(module, name, redirected(real))
