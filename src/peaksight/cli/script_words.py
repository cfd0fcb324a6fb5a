"""Reads what follows `peaksight run`: a script or a module with its arguments, also behind `python`."""

import re
import sys
from pathlib import PurePath

from peaksight.errors import UnsupportedError, UsageError
from peaksight.records import ScriptCommand

_PYTHON = re.compile(r"python(\d+(\.\d+)*)?(\.exe)?$")
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "srun"}
_LAUNCHER_MODULES = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands", "deepspeed.launcher")

# Options of the interpreter that take a value; the others are single letters.
_WITH_VALUE = ("-W", "-X")


def script_command(words: tuple[str, ...], *, is_module: bool = False) -> ScriptCommand:
    """The command that `words` name; `is_module` when `-m` came before them.

    An interpreter in front (`python -u train.py`) is taken off with its options, which have no effect here.
    UsageError when nothing is left to run, UnsupportedError for a launcher of several processes.
    """
    if words and not is_module and _is_python(words[0]):
        words, is_module = _after_interpreter(words[1:])
    if not words:
        raise UsageError("Nothing to run: name a script, as in `peaksight run train.py`.", slug="nothing-to-run")
    target, *args = words
    _refuse_launcher(target, words, is_module)
    return ScriptCommand(target=target, args=tuple(args), is_module=is_module)


def _is_python(word: str) -> bool:
    return word == sys.executable or _PYTHON.match(PurePath(word).name) is not None


def _after_interpreter(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """What follows the interpreter's own options, and whether `-m` was among them."""
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        if option == "-m":
            return words, True
        if option in ("-c", "-"):
            raise UsageError(f"Can't run `python {option}`: put the code into a file.", slug="nothing-to-run")
        if option in _WITH_VALUE:
            words = words[1:]
    return words, False


def _refuse_launcher(target: str, words: tuple[str, ...], is_module: bool) -> None:
    is_launcher = target.startswith(_LAUNCHER_MODULES) if is_module else PurePath(target).name in _LAUNCHERS
    if is_launcher:
        script = next((i for i, word in enumerate(words) if word.endswith(".py")), None)
        instead = " ".join(words[script:]) if script is not None else "train.py ARGS"
        raise UnsupportedError(
            f"Can't simulate a launch by {target!r}: it starts several processes and one rank is simulated. "
            f"For one rank alone, type: peaksight run {instead}",
            slug="launcher",
        )
