"""See the memory peak of a deep-learning training run before the GPU does."""

from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "plan", "run", "watch"]


def __getattr__(name: str) -> Any:
    """Load a function when it is first asked for: importing peaksight imports neither torch nor its own stages."""
    if name not in ("plan", "run", "watch"):
        raise AttributeError(f"module 'peaksight' has no attribute {name!r}")
    from peaksight import library

    return getattr(library, name)
