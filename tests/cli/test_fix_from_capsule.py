"""`peaksight fix --from CAPSULE`."""

import json

import pytest

from helpers_capsules import failure_of, other_process, process_of, write_capsule
from peaksight.cli.from_capsule import from_capsule
from peaksight.cli.output import Output
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import UsageError
from peaksight.records.plan_file import digest_of_script
from peaksight.units import GIB

SCRIPT = """
import sys

import torch
from torch import nn

model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(6):
    model(torch.randn(int(sys.argv[2]), 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def capsule_of(script, failure, process=None, **about):
    """Of `script` in its own directory."""
    process = process or process_of(0, world_size=1, argv=("train.py", "--batch", "8"))
    about |= {"directory": str(script.parent), "script_digest": digest_of_script(str(script))}
    return write_capsule(script.parent / "seen", process, failure, **about)


def taken(path, *words, **options):
    return from_capsule(path, words, SimulationOptions(**options), is_module=False, output=Output())


def test_what_is_taken(script, capsys):
    """Card, memory that another card of the name has not, others, settings, ranks, step and command."""
    card = {"total_bytes": 10 * GIB, "processes": other_process(3 * GIB)}
    path = capsule_of(script, failure_of(step=7, card=card), process_of(3), settings="expandable_segments:True")
    command, options = taken(path)

    assert ("train.py", ("--batch", "8")) == (command.target, command.args)
    assert ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True") in command.environment
    assert (
        SimulationOptions(
            gpu="Tesla T4",
            memory=10 * GIB,
            reserved_by_others=3 * GIB,
            torch="2.14.1+cu130",
            ranks=4,
            rank="3",
            steps=7,
        )
        == options
    )
    assert 3 == options.of_each["rank"]
    assert "reserved by others 3.00 GiB" in capsys.readouterr().err


def test_what_is_typed_counts(script):
    """Options, and other arguments of the same script."""
    path = capsule_of(script, failure_of(step=700))
    command, options = taken(path, "train.py", "--batch", "4", gpu="h100-80gb", steps=4)

    assert (("--batch", "4"), "h100-80gb", None, 4) == (command.args, options.gpu, options.memory, options.steps)


@pytest.mark.parametrize("change", ["another", "edited", "gone"])
def test_another_script(script, change):
    """Or another version of it is refused in a sentence."""
    path = capsule_of(script, failure_of())
    words = ()
    if change == "another":
        words = ("other.py",)
    elif change == "edited":
        script.write_text(SCRIPT + "\n")
    else:
        script.unlink()

    with pytest.raises(UsageError) as raised:
        taken(path, *words)
    assert "capsule-script" == raised.value.slug


def test_a_directory_with_several(script):
    """Which one to plan from is not guessed."""
    for rank in (0, 1):
        capsule_of(script, failure_of(), process_of(rank))

    with pytest.raises(UsageError, match="There are 2 capsules"):
        taken(script.parent / "seen")


@pytest.mark.torch
def test_a_plan(peaksight, script):
    """The search is the usual one, for the card of which 80 % belong to others."""
    card = {"name": "Tesla T4", "total_bytes": 15 * GIB, "processes": other_process(int(13.5 * GIB))}
    process = process_of(0, world_size=1, argv=("train.py", "--batch", "40000"))
    path = capsule_of(script, failure_of(step=2, card=card), process)
    done = peaksight("fix", "--from", path, "--candidates", "1", "--json", "-")
    found = json.loads(done.stdout)

    assert "train.py --batch 40000" == " ".join(found["argv"])
    assert found["usable_bytes"] < 1.5 * GIB < found["original"]["outcome"]["reserved_bytes"]
    assert done.returncode == (1 if found["best"] is None else 0)
