"""A world of one rank on the virtual GPU: groups, collectives, DistributedDataParallel, frameworks and launchers."""

import json
import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.utils.data import DistributedSampler

from helpers_commands import peaksight
from peaksight.records import Role
from peaksight.units import MIB

from .cards import by_role, h100, slugs

pytestmark = pytest.mark.torch

BACKENDS = ("nccl", "gloo", "cpu:gloo,cuda:nccl", None)
HERE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def launched(monkeypatch):
    """The variables that a launcher sets."""
    for name, value in HERE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def world(launched, virtual_gpu):
    """A card whose script has made its group."""
    dist.init_process_group("nccl")
    return virtual_gpu


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_group_of_any_backend(backend, launched, virtual_gpu):
    """It says that it has the backend that was asked for, and has one rank; what NCCL takes beside is not known."""
    dist.init_process_group(backend)

    assert slugs(virtual_gpu) == ([] if backend == "gloo" else ["communicator"])
    assert dist.get_backend() == (backend or "undefined")
    assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 1, True)
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_what_nccl_takes_at_most(world):
    """Each further group takes as much again without the kernels, and the first exchange between all more buffers."""
    bounds = [at_most_bytes(world)]
    dist.new_group([0])
    bounds.append(at_most_bytes(world))
    for _ in range(2):
        dist.all_to_all_single(torch.empty(8, device="cuda"), torch.empty(8, device="cuda"))
        bounds.append(at_most_bytes(world))

    assert [840 * MIB, 1324 * MIB, 1766 * MIB, 1766 * MIB] == bounds


def at_most_bytes(virtual_gpu):
    """The bound of what communicators take."""
    return {each.slug: each.at_most_bytes for each in virtual_gpu.approximations.records()}["communicator"]


def test_a_group_without_a_launcher(virtual_gpu, monkeypatch):
    """By address or by store, opening no socket; without either, torch's own complaint."""
    for name in HERE:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="RANK expected"):
        dist.init_process_group("nccl")
    for how in ({"init_method": "tcp://10.0.0.1:99"}, {"store": dist.TCPStore("10.0.0.1", 99, 1, True)}):
        dist.init_process_group("nccl", rank=0, world_size=1, **how)
        dist.destroy_process_group()

    assert "same-ranks" not in slugs(virtual_gpu)


def test_a_group_that_the_script_leaves_is_destroyed(launched):
    """The next run begins without one."""
    with h100():
        dist.init_process_group("nccl")

    assert not dist.is_initialized()


@pytest.mark.filterwarnings("ignore:`torch.distributed:FutureWarning")
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_collectives_keep_values(device, world):
    """Of one rank the result is the input, which a script may read."""
    tensor = torch.arange(4.0, device=device)
    outs = [torch.empty(4, device=device) for _ in range(8)]
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    dist.reduce(tensor, 0)
    dist.all_gather([outs[0]], tensor)
    dist.gather(tensor, [outs[1]])
    dist.scatter(outs[2], [tensor])
    dist.reduce_scatter(outs[3], [tensor])
    dist.all_gather_into_tensor(outs[4], tensor)
    dist.reduce_scatter_tensor(outs[5], tensor)
    dist.all_to_all_single(outs[6], tensor)
    dist.all_to_all([outs[7]], [tensor])
    later = dist.all_reduce(tensor, async_op=True)

    later.wait()
    assert later.is_completed()
    assert {(0.0, 1.0, 2.0, 3.0)} == {tuple(out.tolist()) for out in (tensor, *outs)}


def test_collectives_of_objects(world):
    """Pickled, sent and unpickled."""
    sent, gathered, scattered = [{"a": 1}, "b"], [None], [None]
    dist.broadcast_object_list(sent, src=0)
    dist.all_gather_object(gathered, {"c": [2, 3]})
    dist.scatter_object_list(scattered, ["d"])

    assert (sent, gathered, scattered) == ([{"a": 1}, "b"], [{"c": [2, 3]}], ["d"])


def test_a_group_in_the_group(world):
    """`new_group`, and its collectives."""
    group = dist.new_group([0])
    dist.all_reduce(torch.ones(2, device="cuda"), group=group)

    assert (dist.get_rank(group), dist.get_world_size(group), dist.get_backend(group)) == (0, 1, "nccl")


def test_a_sampler_gives_everything(world):
    """To the only rank."""
    assert [0, 1, 2] == list(DistributedSampler(range(3), shuffle=False))


def parameter_bytes(module):
    return sum(parameter.nbytes for parameter in module.parameters())


@pytest.mark.filterwarnings("ignore:FSDP is switching to use `NO_SHARD`:UserWarning")
@pytest.mark.parametrize("version", [1, 2])
def test_fsdp_of_one_rank_keeps_everything(version, world):
    """Sharded by one: parameters, gradients and optimizer state are as large as ever, and marked as such."""
    model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 64)).cuda()
    num_bytes = parameter_bytes(model)
    sharded = FullyShardedDataParallel(model) if version == 1 else fully_shard(model)
    optimizer = torch.optim.AdamW(sharded.parameters())
    sharded(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()

    assert {parameter.device for parameter in sharded.parameters()} == {torch.device("cuda", 0)}
    assert all(parameter.is_cuda and not parameter.is_meta for parameter in sharded.parameters())
    for role, expected in ((Role.PARAMETER, 1), (Role.GRADIENT, 1), (Role.OPTIMIZER_STATE, 2)):
        assert expected * num_bytes == by_role(world, role)


def test_a_model_is_sharded_before_it_is_moved(world):
    """Its parameters are DTensors then, which move as others do."""
    model = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 64))
    num_bytes = parameter_bytes(model)
    weight = fully_shard(model)[0].weight
    model.cuda()

    assert weight is model[0].weight
    assert (weight.device, weight.to_local().device) == (torch.device("cuda", 0),) * 2
    assert num_bytes == by_role(world, Role.PARAMETER)


SHOW = """
import json, os, sys, torch
import torch.distributed as dist
dist.init_process_group()
print(json.dumps({name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "A", "TORCHELASTIC_RUN_ID")}))
torch.ones(256, device="cuda")
"""
DDP = """
import lightning, torch
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 64)
    def training_step(self, batch, index):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 64)), batch_size=8)
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
lightning.Trainer(accelerator="gpu", strategy="ddp", devices=1, max_epochs=1, **quiet).fit(Model(), data)
"""
ACCELERATE = """
import torch, accelerate
accelerator = accelerate.Accelerator()
print(accelerator.distributed_type, accelerator.mixed_precision)
model = torch.nn.Linear(64, 64)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 64)), batch_size=8)
model, optimizer, data = accelerator.prepare(model, torch.optim.AdamW(model.parameters()), data)
for batch, in data:
    loss = model(batch).sum()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.gather(loss)
"""
TRAINER = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=64, n_head=2, vocab_size=500))
words = [{"input_ids": torch.arange(32), "labels": torch.arange(32)}] * 64
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, report_to=[], save_strategy="no")
print(arguments.parallel_mode)
Trainer(model=model, args=arguments, train_dataset=words).train()
"""


@pytest.fixture
def report_of(tmp_path):
    """Runs a script as it is typed, and returns its report and what it printed."""

    def run(text, *words):
        (tmp_path / "train.py").write_text(text)
        environment = os.environ | {"HF_HUB_OFFLINE": "1"}
        done = peaksight("run", "--gpu", "h100-80gb", "--json", "-", *words, cwd=tmp_path, env=environment)
        assert done.stdout, done.stderr
        return json.loads(done.stdout), done.stderr

    return run


def test_torchrun(report_of):
    """GIVEN variables in front of it, THEN the script sees them and those of a worker."""
    _, printed = report_of(SHOW, *"A=1 torchrun --rdzv-id job7 train.py".split())

    assert '{"RANK": "0", "WORLD_SIZE": "1", "A": "1", "TORCHELASTIC_RUN_ID": "job7"}' in printed


@pytest.mark.models
@pytest.mark.parametrize(
    ("text", "words", "prints"),
    [
        pytest.param(DDP, "train.py", "GLOBAL_RANK: 0, MEMBER: 1/1", marks=pytest.mark.slow),
        (ACCELERATE, "train.py", "DistributedType.NO no"),
        (ACCELERATE, "accelerate launch --num_processes 2 --mixed_precision bf16 train.py", "MULTI_GPU bf16"),
        pytest.param(TRAINER, "torchrun train.py", "ParallelMode.DISTRIBUTED", marks=pytest.mark.slow),
    ],
    ids=["lightning", "accelerate", "accelerate-launch", "trainer"],
)
def test_frameworks(text, words, prints, report_of):
    """GIVEN a framework that makes the group itself, THEN it runs to the steady state."""
    report, printed = report_of(text, *words.split())

    assert report["finished"] == "steady", printed
    assert len(report["steps"]) == 3
    assert prints in printed
