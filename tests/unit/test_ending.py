"""How our processes end."""

import os
import subprocess
import sys

END = "import atexit, ctypes, threading; from peaksight.ending import end_process\n"


def ended(code, **streams):
    """The process that ran `code`, whose end it is."""
    code = f"import sys; sys.path[:] = {sys.path!r}; {END}{code}"
    return subprocess.run([sys.executable, "-I", "-c", code], stderr=subprocess.PIPE, text=True, check=False, **streams)


def test_what_is_registered_is_called_and_what_is_printed_is_written():
    """By threads, by what atexit calls, by C; nothing is freed."""
    done = ended(
        "class Kept:\n    def __del__(self): print('freed')\n"
        "kept = Kept()\n"
        "threading.Timer(0.1, print, ['thread']).start()\n"
        "atexit.register(ctypes.CDLL(None).puts, b'C')\n"
        "atexit.register(print, 'atexit')\n"
        "end_process(3)",
        stdout=subprocess.PIPE,
    )

    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.split() == ["thread", "atexit", "C"]


def test_who_looks_on_is_not_cut_short():
    """`python -m cProfile -m peaksight` prints its table after the command."""
    looking_on = "sys.setprofile(lambda *args: None)\ntry: end_process(3)\nfinally: print('table')"
    done = ended(looking_on, stdout=subprocess.PIPE)

    assert (done.returncode, done.stdout, done.stderr) == (3, "table\n", "")


def test_what_cannot_be_written_is_told():
    """As Python does, with its exit code."""
    read, write = os.pipe()
    os.close(read)
    done = ended("print('lost'); end_process(0)", stdout=write)
    os.close(write)

    assert done.returncode == 120
    assert "BrokenPipeError" in done.stderr
