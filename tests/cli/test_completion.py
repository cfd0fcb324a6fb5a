"""Completion in a shell, as the shell asks for it."""

import os
import shutil
import subprocess
import sys

import pytest


def completed(*words):
    """What bash is told for `words`, of which the last is being typed: pairs of a type and a value."""
    asked = {"COMP_WORDS": " ".join(("peaksight", *words)), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-m", "peaksight"],
        env=os.environ | asked | {"_PEAKSIGHT_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return [tuple(line.split(",", 1)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("ver",), ("plain", "verify")),
        (("run", "--gpu", "rtx-409"), ("plain", "rtx-4090")),
        (("run", "--gpu", "h100-80gb:1g"), ("plain", "h100-80gb:1g.10gb")),
        (("fix", "--class", "r"), ("plain", "rounding")),
        (("compare", "--each"), ("plain", "--each-commit")),
        (("explain", "logits"), ("plain", "logits-unsupervised")),
        (("explain", "micro"), ("plain", "micro-batches")),
        (("run", "--gpu", "t4", "tr"), ("file", "tr")),
        (("run", "train.py", "da"), ("file", "da")),
        (("run", "--json", "re"), ("file", "re")),
        (("read", "snap"), ("file", "snap")),
        (("watch", "--directory", "wa"), ("dir", "wa")),
    ],
)
def test_what_is_completed(words, found):
    """Commands, options, cards and their slices, classes, rules, fixes, files and folders."""
    assert found in completed(*words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_the_shell_reads(peaksight, shell):
    """The shell takes it, where it is installed."""
    done = peaksight("completion", shell)

    assert (done.returncode, done.stderr) == (0, "")
    assert f"_PEAKSIGHT_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=done.stdout, text=True, check=True, timeout=600)


def test_a_shell_that_is_not_known(peaksight):
    """The known ones are listed."""
    done = peaksight("completion", "csh")

    assert done.returncode == 2
    assert "'bash', 'zsh', 'fish'" in done.stderr
