"""What is installed beside peaksight: torch, jax, and the libraries of its extras."""

import sys
from importlib.util import find_spec

from peaksight.errors import UnsupportedError, UsageError

NO_DIFF = (
    "libcst is not installed, so that calls in the script are not edited, and told in words only; "
    "`pip install 'peaksight[codemod]'` brings it"
)


def check_torch() -> None:
    """Check that torch is there, before anything imports it.

    Raises:
        UnsupportedError: it is not.
    """
    if not is_installed("torch"):
        raise UnsupportedError(
            f"Can't simulate PyTorch: torch is not installed in {sys.prefix}, where peaksight runs. Install peaksight "
            "beside the torch of the script, or torch here: `pip install 'peaksight[torch]'`.",
            slug="torch-missing",
        )


def check_jax() -> None:
    """Check that jax is there.

    Raises:
        UnsupportedError: it is not.
    """
    if not is_installed("jax"):
        raise UnsupportedError(
            f"Can't simulate a script under JAX: jax is not installed in {sys.prefix}, where peaksight runs. Install "
            "peaksight beside the jax of the script, or jax here: `pip install 'peaksight[jax]'`.",
            slug="jax-missing",
        )


def check_codemod() -> None:
    """Check that what edits calls is there.

    Raises:
        UsageError: it is not.
    """
    if not is_installed("libcst"):
        raise UsageError(
            f"Can't edit calls in the script: libcst is not installed in {sys.prefix}, where peaksight runs. Leave "
            "--write out, or install it: `pip install 'peaksight[codemod]'`.",
            slug="codemod-missing",
        )


def is_installed(module: str) -> bool:
    """Whether `module` can be imported, without doing so."""
    if module in sys.modules:
        return sys.modules[module] is not None  # None keeps an import from finding it
    return find_spec(module) is not None
