"""Every flag, so that adding one is a visible decision."""

import pytest

from peaksight.cli import peaksight

FLAGS = {
    "run": "--gpu --gpus --memory --reserved-by-others --ranks --rank --torch --steps --worst-batch --plan --fix --save"
    " --json --html --force --all --format -o --output -q --quiet -m",
    "fix": "--gpu --gpus --memory --reserved-by-others --ranks --rank --torch --steps --worst-batch --class --head-room"
    " --candidates --vary --sweep --max-batch --cheapest --apply --from --write --certify --with --report --json --html"
    " --force --format -q --quiet -m",
    "compare": "--gpu --gpus --memory --reserved-by-others --ranks --rank --torch --steps --worst-batch --each-commit "
    "-m --json --html --force --format -q --quiet",
    "verify": "--against --plan --with --steps --timeout --json --html --force -q --quiet -m",
    "read": "--json --html --force -q --quiet",
    "report": "--json --html --force --all --format -o --output -q --quiet",
    "explain": "--markdown",
    "replay": "",
    "gpus": "--mig --json",
    "watch": "--directory --tensorboard --wandb --mlflow --prometheus --predicted --html --plan -q --quiet --scalar -m",
    "completion": "",
    "planned": "--plan -m",
}


def test_the_commands():
    """No command without its line above."""
    assert set(FLAGS) == set(peaksight.commands)


@pytest.mark.parametrize("command", FLAGS)
def test_the_flags_of_a_command(command):
    """In the order of the help."""
    options = [option for parameter in peaksight.commands[command].params for option in parameter.opts]

    assert [option for option in options if option.startswith("-")] == FLAGS[command].split()


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_is_explained(command):
    """A flag without help is a riddle."""
    flags = [parameter for parameter in peaksight.commands[command].params if parameter.opts[0].startswith("-")]

    assert all(flag.help for flag in flags)
