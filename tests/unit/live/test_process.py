"""Who a process is, and which run it belongs to."""

import os

import pytest

from peaksight.live.process import this_process

VARIABLES = (
    "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT"
    " SLURM_JOB_ID SLURM_STEP_ID SLURM_PROCID SLURM_LOCALID SLURM_NTASKS"
).split()


@pytest.fixture
def process(monkeypatch):
    """This process with the variables of a launcher."""

    def make(**variables):
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return this_process(("train.py",))

    return make


def test_alone(process):
    """The run is named after the time and the process."""
    found = process()

    assert (found.rank, found.world_size, found.slurm_job) == (0, 1, "")
    assert found.run.endswith(f"-{os.getpid()}")


def test_ranks_that_start_at_different_times(process):
    """GIVEN one launcher without a name, THEN they come to the same one: it is the launcher's process that tells."""
    launch = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    first, second = (process(RANK=rank, **launch) for rank in "01")

    assert first.run == second.run
    assert first.run.startswith(f"launch-{os.getppid()}-")
    assert (first.rank, second.rank) == (0, 1)


def test_a_launch_with_a_name(process):
    """Of torchrun, or of SLURM, or by where the machines of a launch meet."""
    assert process(TORCHELASTIC_RUN_ID="mine", WORLD_SIZE="2").run == "mine"
    slurm = process(SLURM_JOB_ID="77", SLURM_STEP_ID="3", SLURM_PROCID="5", SLURM_NTASKS="8", SLURM_LOCALID="1")
    assert (slurm.run, slurm.rank, slurm.local_rank, slurm.world_size) == ("slurm-77.3", 5, 1, 8)
    assert process(WORLD_SIZE="16", LOCAL_WORLD_SIZE="8", MASTER_ADDR="a", MASTER_PORT="1").run == "a-1"
