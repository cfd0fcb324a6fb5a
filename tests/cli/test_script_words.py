"""What people type after `peaksight run`."""

import sys

import pytest

from peaksight.cli.script_words import script_command
from peaksight.errors import UnsupportedError, UsageError


@pytest.mark.parametrize(
    ("typed", "argv"),
    [
        ("train.py --gpu 0 -- -x", "train.py --gpu 0 -- -x"),
        ("python train.py --lr 1", "train.py --lr 1"),
        ("python3 -u train.py", "train.py"),
        ("python3.11 -O -W ignore -X dev train.py -u", "train.py -u"),
        ("/usr/bin/python -m pkg.train --lr 1", "-m pkg.train --lr 1"),
        (f"{sys.executable} train.py", "train.py"),
        ("python_trainer.py", "python_trainer.py"),
        ("uv run train.py --lr 1", "train.py --lr 1"),
        ("uv run -m pkg.train", "-m pkg.train"),
        ("poetry run python -u train.py", "train.py"),
    ],
)
def test_the_interpreter_is_taken_off(typed, argv):
    """With its own options and nothing else: what follows the script is the script's."""
    assert " ".join(script_command(tuple(typed.split())).argv) == argv


def test_after_m_the_first_word_is_a_module():
    """`peaksight run -m python.thing` runs a module, whatever its name."""
    command = script_command(("python", "train.py"), is_module=True)

    assert (command.target, command.is_module) == ("python", True)


@pytest.mark.parametrize(
    ("typed", "environment"),
    [
        ("CUDA_VISIBLE_DEVICES=0 python train.py A=2", {"CUDA_VISIBLE_DEVICES": "0"}),
        ("env -u A B=x=y C= python train.py A=2", {"A": None, "B": "x=y", "C": ""}),
        ("A=1 uv run env --unset=B A=2 train.py A=2", {"A": "2", "B": None}),
    ],
)
def test_variables_in_front(typed, environment):
    """As `env` sets them; what is nearer to the script counts."""
    command = script_command(tuple(typed.split()))

    assert (command.target, command.args, dict(command.environment)) == ("train.py", ("A=2",), environment)


@pytest.mark.parametrize(
    "typed", ["", "python", "python -u", "python -m", "python -c pass", "python -", "env A=1", "uv run"]
)
def test_nothing_to_run(typed):
    """No script, or none in a file."""
    with pytest.raises(UsageError) as caught:
        script_command(tuple(typed.split()))

    assert caught.value.slug == "nothing-to-run"


@pytest.mark.parametrize("typed", ["env -i python train.py", "uv run --with rich train.py", "conda run -n a train.py"])
def test_what_chooses_another_environment_is_refused(typed):
    """By its name: which libraries are installed is no business of a simulation."""
    with pytest.raises(UsageError) as caught:
        script_command(tuple(typed.split()))

    assert caught.value.slug == "before-script"
    assert typed.split()[1] in str(caught.value)


@pytest.mark.parametrize(
    "typed", ["/opt/bin/deepspeed train.py --lr 1", "mpirun -n 2 python train.py --lr 1", "srun train.py --lr 1"]
)
def test_a_launcher_of_its_own_kind_is_refused_with_what_to_type(typed):
    """The way out is the script, as so many ranks of torchrun's."""
    with pytest.raises(UnsupportedError, match=r"peaksight run --ranks N train\.py --lr 1$"):
        script_command(tuple(typed.split()))


LONG_SHEBANG = "#!/bin/sh\n'''exec' /a/long/path/python3 \"$0\" \"$@\"\n' '''\nprint()"


@pytest.mark.parametrize(
    "content", ["#!/usr/bin/env python3\n", "#!/opt/bin/python3.11 -E\n", "#!/usr/bin/env -S uv run -s\n", LONG_SHEBANG]
)
def test_a_console_script_is_found_on_the_path(content, tmp_path, monkeypatch):
    """Any program that Python runs, by the first line of its file."""
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "mytrain"
    program.write_text(content)
    program.chmod(0o755)

    command = script_command(("mytrain", "--epochs", "3"))

    assert (command.target, command.args) == (str(program), ("--epochs", "3"))


@pytest.mark.parametrize("content", [b"#!/bin/sh\npython train.py\n", b"\x7fELF\0"])
def test_another_program_is_refused(content, tmp_path, monkeypatch):
    """A shell script or a binary, on the path or by its own."""
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "mytrain"
    program.write_bytes(content)
    program.chmod(0o755)

    for word in ("mytrain", str(program)):
        with pytest.raises(UnsupportedError, match="it is not a Python program") as caught:
            script_command((word,))
        assert caught.value.slug == "other-program"


def test_a_file_that_is_not_there_stays_as_it_is():
    """The script runner says that there is no such file."""
    assert script_command(("nowhere.py",)).target == "nowhere.py"
