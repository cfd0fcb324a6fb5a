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
    ],
)
def test_the_interpreter_is_taken_off(typed, argv):
    """With its own options and nothing else: what follows the script is the script's."""
    assert " ".join(script_command(tuple(typed.split())).argv) == argv


def test_after_m_the_first_word_is_a_module():
    """`peaksight run -m python.thing` runs a module, whatever its name."""
    command = script_command(("python", "train.py"), is_module=True)

    assert (command.target, command.is_module) == ("python", True)


@pytest.mark.parametrize("typed", ["", "python", "python -u", "python -m", "python -c pass", "python -"])
def test_nothing_to_run(typed):
    """No script, or none in a file."""
    with pytest.raises(UsageError) as caught:
        script_command(tuple(typed.split()))

    assert caught.value.slug == "nothing-to-run"


@pytest.mark.parametrize(
    "typed",
    [
        "torchrun --nproc-per-node 2 train.py --lr 1",
        "accelerate launch train.py --lr 1",
        "python -m torch.distributed.run --nproc-per-node 2 train.py --lr 1",
        "/opt/bin/deepspeed train.py --lr 1",
    ],
)
def test_a_launcher_is_refused_with_what_to_type(typed):
    """The way out is the script alone."""
    with pytest.raises(UnsupportedError, match=r"peaksight run train\.py --lr 1$"):
        script_command(tuple(typed.split()))
