"""Any sequence of file operations ends the same in a scratch as on the real files, step by step."""

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from peaksight.virtual_gpu.script import Scratch

from .homes import fingerprint

NAMES = st.sampled_from(
    ["a", "b", "d", "d/a", "d/e", "d/e/a", "l", "l/a", "l/e", "m", "d/m", "./d/../a", "d/e/../../l"]
)


def make_small_home(home):
    (home / "d" / "e").mkdir(parents=True)
    for name in ("a", "d/a", "d/e/a"):
        (home / name).write_text(f"old {name}")
    (home / "l").symlink_to("d")
    (home / "m").symlink_to("missing")


def write(mode):
    def act(path, other):
        with open(path, mode) as file:
            file.write(f"{mode} {other}")

    return act


def read(path, other):
    with open(path) as file:
        return file.read(), os.path.getsize(path)


def entries(path, other):
    with os.scandir(path) as found:
        return sorted((e.name, e.is_dir(), e.is_file(), e.is_symlink(), e.path) for e in found)


def facts(path, other):
    status = os.stat(path)
    same = os.path.samefile(path, other)
    return os.path.isdir(path), os.path.islink(path), os.path.realpath(path), status.st_mode, same


def apart(act):
    """`act`, unless it would copy a directory into itself, as a move that cannot rename does."""

    def act_apart(path, other):
        if (os.path.realpath(other) + "/").startswith(os.path.realpath(path) + "/"):
            raise OSError("not apart")
        return act(path, other)

    return act_apart


OPERATIONS = {
    "w": write("w"),
    "a": write("a"),
    "x": write("x"),
    "r+": write("r+"),
    "read": read,
    "entries": entries,
    "facts": facts,
    "unlink": lambda path, other: os.unlink(path),
    "mkdir": lambda path, other: os.mkdir(path),
    "makedirs": lambda path, other: os.makedirs(path, exist_ok=True),
    "rmdir": lambda path, other: os.rmdir(path),
    "rename": lambda path, other: os.rename(path, other),
    "replace": lambda path, other: Path(path).replace(other),
    "link": lambda path, other: os.link(path, other),
    "symlink": lambda path, other: os.symlink(path, other),
    "truncate": lambda path, other: os.truncate(path, 3),
    "chmod": lambda path, other: os.chmod(path, 0o700),
    "readlink": lambda path, other: os.readlink(path),
    "copy": shutil.copy,
    "copytree": apart(lambda path, other: shutil.copytree(path, other, symlinks=True, dirs_exist_ok=True)),
    "move": apart(shutil.move),
    "rmtree": lambda path, other: shutil.rmtree(path),
    "chdir": lambda path, other: os.chdir(path),
    "cwd": lambda path, other: os.getcwd(),
}


STEPS = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), NAMES, NAMES), min_size=1, max_size=12)


def tree():
    for directory, names, files in os.walk(".", followlinks=False):
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            kind = os.readlink(path) if os.path.islink(path) else "" if os.path.isdir(path) else Path(path).read_text()
            yield path, kind, oct(os.lstat(path).st_mode)


def observe(home, steps):
    """What each step returned or raised, then the tree, with `home` in place of where it is."""
    os.chdir(home)
    seen = []
    for operation, path, other in steps:
        try:
            seen.append((operation, OPERATIONS[operation](path, other)))
        except OSError as error:
            seen.append((operation, type(error).__name__, str(error)))
        except shutil.Error:
            seen.append((operation, "shutil.Error"))
    os.chdir(home)
    return repr((seen, sorted(tree()))).replace(str(home), "<home>")


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_any_sequence(steps):
    """Results, errors with their text, and the tree in the end are the same; the person's files do not change."""
    before_all = os.getcwd()
    with tempfile.TemporaryDirectory() as directory:
        plain, simulated = Path(directory, "p"), Path(directory, "s")
        make_small_home(plain)
        make_small_home(simulated)
        before = fingerprint(simulated)
        try:
            with Scratch():
                actual = observe(simulated, steps)
            expected = observe(plain, steps)
        finally:
            os.chdir(before_all)

        assert expected == actual
        assert before == fingerprint(simulated)
