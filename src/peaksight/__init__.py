"""See the memory peak of a deep-learning training run before the GPU does."""

from typing import Any

__version__ = "0.1.0"

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> Any:
    """Load `run` when it is first asked for: importing peaksight imports neither torch nor its own stages."""
    if name != "run":
        raise AttributeError(f"module 'peaksight' has no attribute {name!r}")
    from peaksight.library import run

    return run
