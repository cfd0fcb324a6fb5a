"""What ends in exit code 2."""

import click

from peaksight.cli import main, peaksight


def test_an_unknown_option_is_a_usage_error(capsys):
    """click explains it."""
    assert main(["run", "--memry", "8GiB", "train.py"]) == 2
    assert "Did you mean '--memory'?" in capsys.readouterr().err


def test_a_size_that_is_none(capsys):
    """The message says how to write one."""
    assert main(["run", "--memory", "lots", "train.py"]) == 2
    assert "not a size: 'lots' (write 24GiB" in capsys.readouterr().err


def test_our_own_mistake_does_not_say_that_the_job_does_not_fit(monkeypatch, capsys):
    """Exit code 1 is an answer; a bug is none."""

    @click.command("broken")
    def broken():
        raise ZeroDivisionError

    monkeypatch.setitem(peaksight.commands, "broken", broken)

    assert main(["broken"]) == 2
    assert "the mistake is in peaksight" in capsys.readouterr().err


def test_help_and_version_are_no_errors():
    """Exit code 0."""
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
