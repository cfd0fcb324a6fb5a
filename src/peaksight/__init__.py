"""See the memory peak of a deep-learning training run before the GPU does."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peaksight.library import plan, run, watch
    from peaksight.notebooks.magic import load_ipython_extension
    from peaksight.notebooks.peak import peak

__version__ = "0.2.0.dev0"

__all__ = ["__version__", "load_ipython_extension", "peak", "plan", "run", "watch"]

_HOMES = {
    "load_ipython_extension": "peaksight.notebooks.magic",
    "peak": "peaksight.notebooks.peak",
    "plan": "peaksight.library",
    "run": "peaksight.library",
    "watch": "peaksight.library",
}


def __getattr__(name: str) -> Any:
    """Load a function when it is first asked for: importing peaksight imports neither torch nor its own stages."""
    if name not in _HOMES:
        raise AttributeError(f"module 'peaksight' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
