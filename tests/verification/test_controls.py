"""The certificate on pairs of training scripts of which it is known how they differ."""

import pytest

from benchmarks.controls.table import SCRIPTS, controls

pytestmark = pytest.mark.torch

CONTROLS = {control.name: control for control in controls()}
# `make controls` has the others.
FAST = [control for control in CONTROLS.values() if control.fast]


def _parameters(*, needs):
    some = [control for control in FAST if bool(control.needs) == needs]
    return pytest.mark.parametrize("control", some, ids=[control.name for control in some])


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    """Keeps what originals left, and starts runs without importing torch anew."""
    from benchmarks.controls.forks import RecordedForks
    from benchmarks.controls.verdicts import Verifier

    forks = RecordedForks()
    yield Verifier(tmp_path_factory.mktemp("runs"), forks.start)
    forks.close()


@pytest.fixture(scope="module")
def verifier_in_processes(tmp_path_factory):
    """Keeps what originals left, too; a library is imported by each run."""
    from benchmarks.controls.verdicts import Verifier

    return Verifier(tmp_path_factory.mktemp("runs"))


@_parameters(needs=False)
def test_the_verdict(verifier, control):
    """As the table says, with what was exercised and what was not."""
    answer = verifier.verify(control)

    assert [] == answer.mistakes, answer


@pytest.mark.models
@pytest.mark.slow
@_parameters(needs=True)
def test_the_verdict_with_libraries(verifier_in_processes, control):
    """They are imported after torch is watched."""
    answer = verifier_in_processes.verify(control)

    assert [] == answer.mistakes, answer


def test_every_script_has_a_control():
    """And no name stands for two of them."""
    commands = " ".join(control.original + " " + control.changed for control in controls())

    assert {path.name for path in SCRIPTS.glob("*.py")} == {word for word in commands.split() if word.endswith(".py")}
    assert len(CONTROLS) == len(controls())
