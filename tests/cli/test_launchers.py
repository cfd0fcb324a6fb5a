"""What people type to start several processes, and what rank 0 sees of it."""

import logging
import os
import re
from pathlib import Path

import pytest

from peaksight.cli.script_words import script_command
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.errors import UnsupportedError, UsageError

pytestmark = pytest.mark.torch


def launched(typed):
    """The command, and what is set for it."""
    command = script_command(tuple(typed.split()))
    return command, dict(command.environment)


@pytest.mark.parametrize(
    ("typed", "argv", "processes"),
    [
        ("torchrun train.py --lr 1", "train.py --lr 1", 1),
        ("torchrun --nnodes 2 --nproc-per-node=4 train.py --nnodes 3", "train.py --nnodes 3", 8),
        ("torchrun --nnodes 1:4 --nproc_per_node 2 -m pkg.train --lr 1", "-m pkg.train --lr 1", 8),
        ("torchrun --standalone --nproc-per-node gpu train.py", "train.py", 1),
        ("torchrun --nproc-per-node 2 --no-python python -u train.py --lr 1", "train.py --lr 1", 2),
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", "train.py", 2),
        ("python -m torch.distributed.launch --nproc-per-node 2 train.py -x", "train.py --local-rank=0 -x", 2),
        ("python -m torch.distributed.launch --use-env train.py -x", "train.py -x", 1),
        ("uv run torchrun --nproc-per-node 2 train.py", "train.py", 2),
    ],
)
def test_torchrun(typed, argv, processes):
    """Its own parser says where the script begins, and how many processes were asked for."""
    command, environment = launched(typed)

    assert (" ".join(command.argv), command.processes) == (argv, processes)
    assert {environment[name] for name in ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK")} == {"0"}
    assert int(environment["WORLD_SIZE"]) == processes
    assert int(environment["LOCAL_WORLD_SIZE"]) * int(environment["GROUP_WORLD_SIZE"]) == processes


@pytest.mark.parametrize(
    ("typed", "gpus", "ranks", "per_machine"),
    [
        ("torchrun --nproc-per-node gpu train.py", 4, 4, 4),
        ("torchrun --nproc-per-node auto --nnodes 2 train.py", 4, 8, 4),
        ("torchrun --nproc-per-node gpu train.py", 1, 1, 1),
        ("torchrun --nproc-per-node 2 train.py", 4, 2, 2),
    ],
)
def test_a_process_for_each_card(typed, gpus, ranks, per_machine):
    """GIVEN a machine with so many, THEN torchrun starts as many where it is told to."""
    command = SimulationOptions(gpus=gpus).launched(launched(typed)[0])
    environment = dict(command.environment)

    assert command.processes == ranks
    assert (environment["WORLD_SIZE"], environment["LOCAL_WORLD_SIZE"]) == (str(ranks), str(per_machine))


def test_torchrun_sets_what_its_agent_sets():
    """The names are those that the elastic agent gives a worker."""
    from torch.distributed.elastic.agent.server import local_elastic_agent

    _, environment = launched("torchrun --master-port 1234 --rdzv-id job7 --max-restarts 2 --role trainer train.py")
    source = Path(local_elastic_agent.__file__).read_text(encoding="utf-8")
    set_by_agent = source.partition("worker_env")[2].partition("args[local_rank]")[0]

    assert set(re.findall(r'"([A-Z_]+)": ', set_by_agent)) <= environment.keys()
    assert environment["MASTER_PORT"] == "1234"
    assert environment["TORCHELASTIC_RUN_ID"] == "job7"
    assert environment["TORCHELASTIC_MAX_RESTARTS"] == "2"
    assert environment["ROLE_NAME"] == "trainer"


@pytest.mark.parametrize(
    ("typed", "cause"),
    [
        ("torchrun --nope train.py", "unrecognized arguments: --nope"),
        ("torchrun --nproc-per-node 2", "the following arguments are required: training_script"),
        ("torchrun --nnodes 1:2:3 train.py", "nnodes=1:2:3"),
        ("torchrun --help", "they start no script"),
        ("torchrun --nproc-per-node gpus train.py", "'gpus'"),
        ("torchrun --nproc-per-node -1 train.py", "they start no process"),
    ],
)
def test_what_torchrun_would_complain_about(typed, cause, capsys):
    """Its own complaint, without its usage."""
    with pytest.raises(UsageError) as caught:
        launched(typed)

    assert cause in str(caught.value)
    assert caught.value.slug == "launcher-options"
    assert capsys.readouterr().err == ""


@pytest.fixture
def no_configuration(tmp_path, monkeypatch):
    """No file of `accelerate config` is found."""
    launch = pytest.importorskip("accelerate.commands.launch")
    monkeypatch.setattr(launch, "default_config_file", str(tmp_path / "none.yaml"))


@pytest.mark.models
@pytest.mark.usefixtures("no_configuration")
class TestAccelerate:
    """`accelerate launch`."""

    def test_one_process_has_no_rank(self):
        """As its simple launcher, which starts no torchrun."""
        command, environment = launched("accelerate launch --mixed_precision bf16 train.py --lr 1")

        assert (" ".join(command.argv), command.processes) == ("train.py --lr 1", 1)
        assert environment["ACCELERATE_MIXED_PRECISION"] == "bf16"
        assert "RANK" not in environment
        assert SimulationOptions(gpus=4).launched(command).processes == 4

    def test_a_process_for_each_card_shards(self):
        """Also where one card is enough to start torchrun."""
        command, environment = launched("accelerate launch --use_fsdp train.py")

        assert environment["WORLD_SIZE"] == "1"
        assert SimulationOptions(gpus=4).launched(command).processes == 4

    def test_one_process_on_a_machine_with_several_cards(self):
        """GIVEN that one was asked for, THEN the other cards are its own."""
        command, _ = launched("accelerate launch --num_processes 1 train.py")

        assert SimulationOptions(gpus=4).launched(command).processes == 1

    @pytest.mark.parametrize("flag", ["", "--multi_gpu", "--multi-gpu"])
    def test_several_processes_are_torchruns(self, flag):
        """The machine of the job has as many cards as it asks for."""
        command, environment = launched(
            f"accelerate launch {flag} --num-processes 4 --main_process_port 7 -m pkg.train"
        )

        assert (" ".join(command.argv), command.processes) == ("-m pkg.train", 4)
        assert environment["ACCELERATE_MIXED_PRECISION"] == "no"
        assert (environment["WORLD_SIZE"], environment["MASTER_PORT"]) == ("4", "7")

    def test_a_configuration_file(self, tmp_path):
        """Its values count where the command line gives none."""
        file = tmp_path / "two.yaml"
        file.write_text(
            "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: fp16\n"
            "num_machines: 1\nnum_processes: 2\nmachine_rank: 0\nuse_cpu: false\ndebug: false\n"
        )
        command, environment = launched(f"accelerate launch --config_file {file} train.py")

        assert command.processes == 2
        assert environment["ACCELERATE_MIXED_PRECISION"] == "fp16"

    @pytest.mark.parametrize("engine", ["DeepSpeed", "Megatron-LM"])
    def test_other_engines_are_refused(self, engine):
        """By name, with what to type."""
        flag = "--use_" + engine.lower().replace("-", "_")
        with pytest.raises(UnsupportedError, match=engine) as caught:
            launched(f"accelerate launch {flag} --num_processes 2 train.py")

        assert caught.value.slug == "launcher"

    def test_several_machines(self):
        """The first one is simulated, whichever this is."""
        command, environment = launched("accelerate launch --multi_gpu --num_machines 2 --num_processes 4 train.py")

        assert (command.processes, environment["LOCAL_WORLD_SIZE"]) == (4, "2")

    @pytest.mark.parametrize(
        "words",
        ["--nope train.py", "", "--config_file nowhere.yaml train.py", "--multi_gpu --num_machines 2 train.py"],
    )
    def test_what_accelerate_would_complain_about(self, words):
        """In one sentence."""
        with pytest.raises(UsageError) as caught:
            launched(f"accelerate launch {words}")

        assert caught.value.slug == "launcher-options"

    def test_its_other_commands_run_no_script(self):
        """`accelerate config` asks questions."""
        with pytest.raises(UsageError) as caught:
            launched("accelerate config")

        assert caught.value.slug == "nothing-to-run"

    def test_nothing_is_left_of_it(self):
        """Neither its logging nor a variable."""
        before = dict(os.environ), logging.root.handlers[:]
        launched("accelerate launch --num_processes 2 train.py")

        assert before == (dict(os.environ), logging.root.handlers)
