"""Running a script: as Python would, but in this process."""

import builtins
import os
import signal
import subprocess
import sys
import zipfile

import pytest

from peaksight.errors import ScriptError, StopSimulation
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.script import run_script

SHOW = """
import os, sys
for name in sorted(name for name in globals() if name.startswith("__")):
    value = globals()[name]
    print(name, value if isinstance(value, (str, dict, type(None))) else type(value).__name__)
spec = globals().get("__spec__")
print(spec and (spec.name, spec.origin, spec.parent))
print(sys.argv, sys.path[0], os.getcwd(), sys.modules["__main__"].__dict__ is globals(), __name__)
import beside
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else None)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a script, a package, a package without `__main__`, and a directory to run."""
    for directory in ("package", "mainless", "folder"):
        (tmp_path / directory).mkdir()
    for file in ("show.py", "package/show.py", "package/__main__.py", "folder/__main__.py"):
        (tmp_path / file).write_text(SHOW)
    for file in ("beside.py", "folder/beside.py", "package/__init__.py", "mainless/__init__.py"):
        (tmp_path / file).touch()
    for name, member in (("app.pyz", "__main__.py"), ("library.zip", "beside.py")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.write(tmp_path / "folder" / "__main__.py", member)
            archive.write(tmp_path / "beside.py", "beside.py") if member != "beside.py" else None
    (tmp_path / "folder" / "link.py").symlink_to("../show.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("beside", "package", "package.show", "mainless"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def write_script(here, text):
    (here / "train.py").write_text(text)
    return ScriptCommand(target="train.py")


def python(*argv):
    return subprocess.run([sys.executable, "-B", *argv], capture_output=True, text=True)


@pytest.mark.parametrize(
    "argv",
    [
        ("show.py", "3", "--flag"),
        ("./folder/../show.py",),
        ("folder", "2"),
        ("folder/link.py",),
        ("app.pyz", "1"),
        ("-m", "package"),
        ("-m", "package.show", "4"),
        ("-m", "show"),
    ],
    ids=" ".join,
)
def test_the_script_sees_what_python_shows_it(argv, here, capfd):
    """Names of `__main__`, arguments, search path and exit code are those of `python ...`."""
    plain = python(*argv)
    is_module = argv[0] == "-m"
    target, *args = argv[is_module:]

    exit_code = run_script(ScriptCommand(target=target, args=tuple(args), is_module=is_module)).exit_code

    assert plain.returncode == exit_code
    assert plain.stdout == capfd.readouterr().out


def test_everything_is_put_back(here):
    """Arguments, search path, `__main__` and the working directory are as before, also after a failure."""
    command = write_script(
        here,
        """
import builtins, os, signal, sys
sys.path.append('x')
sys.argv.append('y')
os.chdir('/')
sys.stdout = sys.stderr = open(os.devnull, 'w')
sys.excepthook = builtins.print = lambda *args: None
signal.signal(signal.SIGINT, signal.SIG_IGN)
1 / 0
""",
    )

    def state():
        streams = (sys.stdout, sys.stderr, sys.excepthook, builtins.print)
        return sys.argv[:], sys.path[:], sys.modules["__main__"], os.getcwd(), os._exit, streams, signal.getsignal(2)

    before = state()

    assert run_script(command).exit_code == 1
    assert before == state()


@pytest.mark.parametrize(
    "script",
    [
        "def f():\n    1 / 0\nf()",
        "import json; json.loads('{')",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise RuntimeError('second') from error",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    open('missing.txt')",
        "raise ExceptionGroup('several', [ValueError(1), KeyError(2)])",
        "x = (1,\n",
        "raise SystemExit('a message')",
        "import sys; sys.exit(True)",
        "import sys; sys.excepthook = lambda kind, error, traceback: print(kind, error, traceback.tb_lineno)\n1 / 0",
        "import missing_module",
        "import os; os._exit(5)",
        "import atexit, sys; sys.exit(7)",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start()",
    ],
)
def test_ends_and_tracebacks_are_pythons(script, here, capfd):
    """What is printed at the end, and the exit code, are those of Python, without a frame of ours."""
    command = write_script(here, script)
    plain = python("train.py")

    exit_code = run_script(command).exit_code

    captured = capfd.readouterr()
    assert plain.returncode == exit_code
    assert plain.stdout == captured.out
    assert plain.stderr == captured.err


def test_our_frames_are_left_out_in_the_middle_too(here, capfd):
    """A call that goes through a function of ours shows the frames before and after it only."""
    command = write_script(here, "from peaksight.records import ScriptCommand\nScriptCommand(target='x', args=3).argv")

    assert run_script(command).exit_code == 1
    stderr = capfd.readouterr().err
    assert "train.py" in stderr
    assert "records" not in stderr.split("Error")[0].replace("from peaksight.records", "")


@pytest.mark.parametrize("end", [StopSimulation("steady"), KeyboardInterrupt()], ids=["stop", "interrupt"])
def test_a_stop_passes_after_the_finally_blocks(end, here, capfd):
    """StopSimulation and Ctrl-C reach the caller when the script has cleaned up."""
    command = write_script(here, "import hook\ntry:\n    hook.stop()\nfinally:\n    print('cleaned up')")

    class Hook:
        @staticmethod
        def stop():
            raise end

    sys.modules["hook"] = Hook
    try:
        with pytest.raises(type(end)):
            run_script(command)
    finally:
        del sys.modules["hook"]

    assert capfd.readouterr().out == "cleaned up\n"
    assert "train.py" not in sys.argv


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (ScriptCommand(target="x.py"), "Can't run 'x.py': there is no such file."),
        (ScriptCommand(target="mainless"), "Can't run 'mainless': it is a directory without a __main__.py."),
        (ScriptCommand(target="library.zip"), "Can't run 'library.zip': it is an archive without a __main__.py."),
        (ScriptCommand(target="nowhere", is_module=True), "Can't run '-m nowhere': there is no such module."),
        (ScriptCommand(target="nowhere.x", is_module=True), "Can't run '-m nowhere.x': there is no such module."),
        (ScriptCommand(target="mainless", is_module=True), "it is a package without a __main__.py."),
        (ScriptCommand(target="mainless.x", is_module=True), "Can't run '-m mainless.x': there is no such module."),
        (ScriptCommand(target="sys", is_module=True), "Can't run '-m sys': it is not Python source."),
    ],
)
def test_what_cannot_be_run_is_named(command, message, here):
    """A missing script, module or `__main__` is a ScriptError that says which."""
    with pytest.raises(ScriptError) as raised:
        run_script(command)

    assert message in str(raised.value)
    assert raised.value.slug == "cannot-run-script"


def test_a_package_that_fails_to_import_is_the_scripts_failure(here, capfd):
    """An error in the package of a module is printed as one, not called a missing module."""
    (here / "mainless" / "__init__.py").write_text("import not_installed")

    assert run_script(ScriptCommand(target="mainless.x", is_module=True)).exit_code == 1
    assert "No module named 'not_installed'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        (
            "train.ipynb",
            b'{"cells": [], "nbformat": 4}',
            "it is a notebook. Make a script of it with `jupyter nbconvert",
        ),
        ("train.sh", b"python train.py", "it is a shell script. Give the command in it that starts Python."),
        ("start", b"#!/usr/bin/env bash\npython train.py", "it is a shell script."),
        ("config.json", b'{"lr": 1}', "it is a .json file. Give the path of a Python script."),
        ("model.bin", b"\x7fELF\x02\x00\x00", "it is a binary file. Give the path of a Python script."),
    ],
)
def test_other_files_are_named(name, contents, message, here):
    """What is no Python source is refused by its kind, also where Python would take it."""
    (here / name).write_bytes(contents)

    with pytest.raises(ScriptError) as raised:
        run_script(ScriptCommand(target=name))

    assert f"Can't run '{name}': {message}" in str(raised.value)


def test_a_script_without_a_suffix(here, capfd):
    """A first line that names Python is no shell script."""
    (here / "train").write_text("#!/usr/bin/env python3\nprint(__file__)")

    assert run_script(ScriptCommand(target="train")).exit_code == 0
    assert capfd.readouterr().out == f"{here / 'train'}\n"
