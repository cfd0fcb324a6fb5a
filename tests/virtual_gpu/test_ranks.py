"""One rank of several on the virtual GPU: what collectives return and take, and what sharding saves."""

import importlib
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from peaksight.errors import ScriptError, UnsupportedError
from peaksight.records import Role
from peaksight.units import MIB
from peaksight.virtual_gpu.ranks.collectives import in_ranges
from peaksight.virtual_gpu.ranks.sharding import Chunks, _where_strided
from peaksight.virtual_gpu.ranks.told import Told
from peaksight.virtual_gpu.ranks.world import World
from peaksight.virtual_gpu.script import Scratch
from peaksight.virtual_gpu.script.shared_files import JobFiles

from .cards import births_on, by_role, h100, requested, slugs

pytestmark = pytest.mark.torch

RANK, SIZE = 2, 4


@pytest.fixture
def rank():
    """Rank 2 of 4, with its card and its group."""
    with h100(num_gpus=SIZE, world=World(RANK, SIZE, SIZE)) as gpu:
        torch.cuda.set_device(RANK)
        dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=RANK, world_size=SIZE)
        yield gpu


def ledger(gpu):
    """Of the card of the rank."""
    return gpu.devices.ledgers[RANK]


def test_the_group_has_all_ranks(rank):
    """Of which this is one, and which is said."""
    assert (dist.get_rank(), dist.get_world_size()) == (RANK, SIZE)
    assert slugs(rank)[0] == "same-ranks"
    dist.barrier()


@pytest.mark.filterwarnings("ignore:`torch.distributed:FutureWarning")
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_collectives(device, rank):
    """GIVEN whole numbers, THEN the others are as if they held the same."""
    mine = torch.arange(8, device=device)
    outs = [torch.empty(8, dtype=torch.int64, device=device) for _ in range(SIZE)]
    gathered = torch.empty(32, dtype=torch.int64, device=device)
    part, part_of_list = (torch.empty(2, dtype=torch.int64, device=device) for _ in range(2))
    exchanged = torch.empty(8, dtype=torch.int64, device=device)
    dist.all_gather(outs, mine)
    dist.all_gather_into_tensor(gathered, mine)
    dist.reduce_scatter_tensor(part, mine)
    dist.reduce_scatter(part_of_list, list(mine.chunk(SIZE)))
    dist.all_to_all_single(exchanged, mine)
    summed, largest = mine.clone(), mine.clone()
    dist.all_reduce(summed)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.broadcast(mine, 0)

    assert [out.tolist() for out in outs] == [list(range(8))] * SIZE
    assert gathered.tolist() == list(range(8)) * SIZE
    assert part.tolist() == part_of_list.tolist() == [16, 20]
    assert exchanged.tolist() == [4, 5] * SIZE
    assert summed.tolist() == [4 * number for number in range(8)]
    assert largest.tolist() == mine.tolist() == list(range(8))


def test_lists_are_gathered_by_way_of_one_tensor(rank):
    """As NCCL's: of the size of all parts, until it is done."""
    parts = [torch.empty(1024, device="cuda") for _ in range(SIZE)]
    mine = torch.empty(1024, device="cuda")
    with births_on(ledger(rank)) as births:
        dist.all_gather(parts, mine)
        dist.reduce_scatter(mine, parts)

    assert requested(births) == [SIZE * 4096] * 2
    assert all(birth.died is not None for birth in births)


def test_objects(rank):
    """Every rank has the same one."""
    gathered = [None] * SIZE
    dist.all_gather_object(gathered, {"a": [1, 2]})

    assert gathered == [{"a": [1, 2]}] * SIZE


def test_objects_that_another_rank_sent(tmp_path):
    """GIVEN a broadcast and a scatter on rank 0, THEN rank 2 receives what rank 0 sent, and keeps what is not known."""
    told = Told()
    for this in (0, RANK):
        with h100(num_gpus=SIZE, world=World(this, SIZE, SIZE), told=told):
            dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=this, world_size=SIZE)
            name, mine, unknown = ["run-7"] if this == 0 else [None], [None], [this]
            dist.broadcast_object_list(name, src=0)
            dist.scatter_object_list(mine, list("abcd") if this == 0 else None, src=0)
            dist.broadcast_object_list(unknown, src=1)

    assert (name, mine, unknown) == (["run-7"], ["c"], [RANK])


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_small_tensors_that_another_rank_sent(device):
    """GIVEN a length that rank 0 broadcasts, THEN rank 2 makes as long a tensor, and nothing more."""
    told = Told()
    for this in (0, RANK):
        with h100(num_gpus=SIZE, world=World(this, SIZE, SIZE), told=told) as gpu:
            dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=this, world_size=SIZE)
            length = torch.tensor([1000 if this == 0 else 0], device=device)
            unknown = torch.full((1,), this, device=device)
            with births_on(gpu.devices.ledgers[0]) as births:
                dist.broadcast(length, src=0)
                dist.broadcast(unknown, src=1)
            row = torch.empty(length.item(), device=device)

    assert (row.shape, unknown.item(), births) == ((1000,), RANK, [])


def test_a_checkpoint_that_another_rank_saved(tmp_path):
    """GIVEN rank 0 saves and removes it after a barrier, THEN rank 2 loads it on its card in between."""
    (tmp_path / "job").mkdir()
    told = Told(files=JobFiles(str(tmp_path / "job")))
    path = tmp_path / "best.pt"
    for this in (0, RANK):
        with Scratch(told.files) as files, h100(num_gpus=SIZE, world=World(this, SIZE, SIZE), told=told, files=files):
            dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=this, world_size=SIZE)
            if this == 0:
                torch.save({"epoch": 3, "model": mlp().state_dict()}, path)
            dist.barrier()
            loaded = torch.load(path, map_location={"cuda:0": f"cuda:{this}"})
            dist.barrier()
            if this == 0:
                path.unlink()

    assert (loaded["epoch"], loaded["model"]["0.weight"].shape) == (3, (4096, 64))
    assert loaded["model"]["0.weight"].device == torch.device("cuda", RANK)


def test_a_sharded_checkpoint(rank, tmp_path):
    """Each rank saves its shards, as if it were the only one, and loads them, which is said."""
    model = mlp()
    fully_shard(model)
    with Scratch() as files:
        dcp.save({"model": model.state_dict()}, checkpoint_id=tmp_path / "step-1")
        loaded = {"model": model.state_dict()}
        dcp.load(loaded, checkpoint_id=tmp_path / "step-1")
        written = [write.path.rpartition("/")[2] for write in files.writes()]

    assert loaded["model"]["0.weight"].to_local().shape == (4096 // SIZE, 64)
    assert sorted(written) == [".metadata", "__0_0.distcp"]
    assert "sharded-checkpoints" in slugs(rank)


def test_groups_of_some(rank):
    """Of those that this rank is not in it gets none."""
    mine, others = dist.new_group([0, 2]), dist.new_group([1, 3])

    assert (dist.get_rank(mine), dist.get_world_size(mine), dist.get_rank(others)) == (1, 2, -1)
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("replicate", "shard"))
    assert (mesh["replicate"].get_local_rank(), mesh["shard"].get_local_rank()) == (1, 0)


def test_collectives_are_kept(rank):
    """With their tensors, their ranks and their step, those of a group of one aside."""
    dist.all_reduce(torch.ones(4, 2, device="cuda"))
    dist.barrier(dist.new_group([0, 2]))
    dist.barrier(dist.new_group([2]))

    assert [(call.kind, call.tensors, call.group, call.step) for call in rank.collectives.facts] == [
        ("all_reduce", "float32[4, 2]", "0-3", 1),
        ("barrier", "", "0,2", 1),
    ]


def kinds_of(gpu):
    """Of the collectives that were called."""
    return [call.kind for call in gpu.collectives.facts]


def test_operators_and_roots_are_kept(rank):
    """GIVEN a group of ranks 1 and 2, THEN roots are told as they are numbered in the world, and sums go unsaid."""
    group, x = dist.new_group([1, RANK]), torch.ones(2, device="cuda")
    parts = [torch.empty_like(x), torch.empty_like(x)]
    dist.broadcast(x, src=1, group=group)
    dist.reduce(x, dst=RANK, op=dist.ReduceOp.MAX, group=group)
    dist.gather(x, parts, dst=RANK, group=group)
    dist.scatter(x, src=1, group=group)
    dist.broadcast_object_list([None], src=1, group=group)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    dist.all_reduce(x)

    assert kinds_of(rank) == [
        "broadcast from rank 1",
        f"reduce by max to rank {RANK}",
        f"gather to rank {RANK}",
        "scatter from rank 1",
        "broadcast_object_list from rank 1",
        "all_reduce by avg",
        "all_reduce",
    ]


def test_a_root_that_is_no_member(rank):
    """It fails as it does on the card."""
    with pytest.raises(ValueError, match="invalid root rank: 9"):
        dist.broadcast(torch.ones(2, device="cuda"), src=9)


@pytest.mark.filterwarnings("ignore:`torch.distributed:FutureWarning")
def test_operators_of_functional_collectives_are_kept(rank):
    """As DTensor reduces."""
    x = torch.ones(4, device="cuda")
    functional.all_reduce(x, "max", dist.group.WORLD)
    functional.reduce_scatter_tensor(x, "avg", 0, dist.group.WORLD)
    functional.all_reduce(x, "sum", dist.group.WORLD)

    assert kinds_of(rank) == ["all_reduce by max", "reduce_scatter by avg", "all_reduce"]


def test_parts_of_several_sizes_are_gathered(rank):
    """GIVEN as many rows as the rank says, THEN the ranks have to agree on all parts, not on their own."""
    parts = [torch.empty(number + 1, device="cuda") for number in range(SIZE)]
    dist.all_gather(parts, torch.ones(RANK + 1, device="cuda"))
    (fact,) = rank.collectives.facts

    assert fact.tensors == "float32[1], float32[2], float32[3], float32[4]"


def test_a_barrier_with_a_limit_of_time(rank):
    """Of a group on the host; on the card it is none."""
    dist.monitored_barrier(dist.new_group(backend="gloo"), timeout=timedelta(seconds=5), wait_all_ranks=True)

    assert kinds_of(rank) == ["barrier"]


@pytest.mark.parametrize(
    ("ranks", "text"), [(range(8), "0-7"), ([3, 7, 11], "3-11:4"), ([0, 1, 3], "0,1,3"), ([2, 1, 0], "2,1,0")]
)
def test_groups_in_words(ranks, text):
    """However large they are."""
    assert in_ranges(list(ranks)) == text


def test_send_and_receive(rank):
    """What comes from a neighbour is as large as what is there for it."""
    there, back = torch.ones(4, device="cuda"), torch.ones(4, device="cuda")
    operations = [dist.P2POp(dist.isend, there, 3), dist.P2POp(dist.irecv, back, 1)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    dist.send(there, 3)
    dist.recv(back, 1)


def parameter_bytes(module):
    return sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())


def step(module, optimizer):
    """One of training."""
    module(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()


def mlp():
    return nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 64)).cuda()


def test_fully_shard_keeps_a_share(rank):
    """A quarter of parameters, gradients and optimizer state."""
    model = mlp()
    num_bytes = parameter_bytes(model)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)

    for role, expected in ((Role.PARAMETER, 1), (Role.GRADIENT, 1), (Role.OPTIMIZER_STATE, 2)):
        assert abs(by_role(ledger(rank), role) - expected * num_bytes / SIZE) < 64


@pytest.mark.parametrize("num_chunks", [1, 3, 4, 7, 12])
def test_one_chunk_of_many(num_chunks):
    """As all of them, of which the last may be small or empty."""
    tensor = torch.arange(20).view(2, 10)
    expected, chunks = torch.chunk(tensor, num_chunks, dim=1), Chunks(tensor, num_chunks, 1)

    assert [chunks[index].tolist() for index in range(len(expected))] == [chunk.tolist() for chunk in expected]
    assert all(chunks[index].numel() == 0 for index in range(len(expected), num_chunks))


@pytest.mark.xfail(
    torch.version.cuda is None, raises=RuntimeError, strict=True, reason="DTensor draws on a fake card of its own"
)
def test_a_sharded_model_is_made_on_the_card(rank):
    """GIVEN a model on meta that is sharded and then initialised, THEN a share of it is there."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(64, 4096), nn.Linear(4096, 64))
    num_bytes = parameter_bytes(model)
    fully_shard(model).to_empty(device="cuda")
    for layer in model:
        layer.reset_parameters()
    dropped = nn.functional.dropout(model[0].weight)

    assert dropped.to_local().shape == (1024, 64)
    assert abs(by_role(ledger(rank), Role.PARAMETER) - num_bytes / SIZE) < 64


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("how", ["fused", "foreach"])
def test_a_sharded_optimizer_makes_nothing_whole(how, rank):
    """DTensor asks what whole results look like, which happens beside the run."""
    model = nn.Linear(1024, 4096, bias=False, device="cuda")
    share = 1024 * 4096 // SIZE * 4
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), **{how: True})
    model(torch.ones(1, 1024, device="cuda")).sum().backward()
    before = len(ledger(rank).births)
    optimizer.step()

    made = [birth.requested_bytes for birth in ledger(rank).births[before:]]
    assert max(made) == share


def test_fsdp1_is_refused(rank):
    """In favour of FSDP2."""
    with pytest.raises(UnsupportedError) as caught:
        FullyShardedDataParallel(mlp())

    assert caught.value.slug == "fsdp1"


def test_deepspeed_is_refused(rank, tmp_path, monkeypatch):
    """GIVEN that it is installed."""
    (tmp_path / "deepspeed.py").write_text("initialize = init_distributed = print")
    monkeypatch.syspath_prepend(tmp_path)
    deepspeed = importlib.import_module("deepspeed")
    with pytest.raises(UnsupportedError) as caught:
        deepspeed.initialize(model=mlp())
    del sys.modules["deepspeed"]

    assert caught.value.slug == "deepspeed"


def test_zero_keeps_a_share_of_optimizer_state(rank):
    """Those of the parameters that are this rank's."""
    model = nn.ModuleList(mlp() for _ in range(SIZE))
    num_bytes = parameter_bytes(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW)
    for each in model:
        each(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()

    assert abs(by_role(ledger(rank), Role.OPTIMIZER_STATE) - 2 * num_bytes / SIZE) < num_bytes / 64


def test_tensor_parallel_keeps_a_share(rank):
    """Of both layers, by columns and by rows."""
    mesh = init_device_mesh("cuda", (SIZE,))
    model = mlp()
    num_bytes = parameter_bytes(model)
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)

    assert abs(by_role(ledger(rank), Role.PARAMETER) - num_bytes / SIZE) < 64 * 4
    assert abs(by_role(ledger(rank), Role.OPTIMIZER_STATE) - 2 * num_bytes / SIZE) < 64 * 8


def test_a_mesh_of_more_ranks_than_there_are(rank):
    """Where the script makes it, in one sentence."""
    for make in (init_device_mesh, dist.init_device_mesh, importlib.import_module("torch.distributed.device_mesh")):
        make = getattr(make, "init_device_mesh", make)
        with pytest.raises(ScriptError, match=r"The mesh of 3 x 2 ranks at .* its world of 4.*--ranks 6") as caught:
            make("cuda", (3, 2))
        assert caught.value.slug == "mesh-shape"


def test_zero_gathers_the_state_of_the_optimizer(rank):
    """Of each other rank in turn: its bytes and what is made of them; the whole is on the host then."""
    model = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(2 * SIZE))).cuda()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    before, num_calls = torch.cuda.memory_allocated(), len(rank.collectives.facts)
    torch.cuda.reset_peak_memory_stats()
    optimizer.consolidate_state_dict(to=RANK)
    state = optimizer.state_dict()["state"]
    share = 2 * 2 * 4 * MIB

    assert set(range(2 * SIZE)) == set(state)
    assert {"cpu"} == {entry["exp_avg"].device.type for entry in state.values()}
    assert 3 * share <= torch.cuda.max_memory_allocated() - before <= 3.1 * share  # and the one before
    assert before == torch.cuda.memory_allocated()
    assert kinds_of(rank)[num_calls:] == [f"broadcast from rank {other}" for other in (0, 1, 3) for _ in range(2)]


def test_a_full_state_dict_is_broadcast_from_rank_0():
    """Tensor by tensor, each whole on the card of every rank, which keeps its share."""
    with h100(num_gpus=SIZE, world=World(0, SIZE, SIZE)):
        dist.init_process_group("nccl", init_method="tcp://localhost:99", rank=0, world_size=SIZE)
        model = mlp()
        full = {name: tensor.cpu() for name, tensor in model.state_dict().items()}
        fully_shard(model)
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(model, full, options=options)

        assert torch.cuda.memory_allocated() == before
        assert torch.cuda.max_memory_allocated() - before >= 64 * 4096 * 4


def test_zero_sends_its_state(rank):
    """To the rank that gathers, and keeps nothing."""
    model = nn.Linear(1024, 1024, bias=False).cuda()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW)
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.consolidate_state_dict()

    with pytest.raises(RuntimeError, match="not been consolidated"):
        optimizer.state_dict()


def test_a_script_without_its_launcher(monkeypatch):
    """It fails as it does on the card, with how to start it."""
    monkeypatch.delenv("RANK", raising=False)
    with h100(), pytest.raises(ValueError, match="environment variable RANK expected") as caught:
        dist.init_process_group("nccl")
    assert "--ranks N" in caught.value.__notes__[0]


def test_a_mesh_that_leaves_ranks_over(rank):
    """GIVEN three of four ranks, THEN one is in no mesh; near miss: a half."""
    with pytest.raises(ScriptError, match=r"The mesh of 3 ranks at .* does not divide its world of 4.*--ranks 3"):
        init_device_mesh("cuda", (3,))
    assert init_device_mesh("cuda", (SIZE // 2,)).size() == 2


def test_collectives_of_dtensors_are_compared(rank):
    """What a redistribution calls, on fake tensors: three ways from shards, with the shapes that a rank gives."""
    mesh = init_device_mesh("cuda", (SIZE,))
    shards = DTensor.from_local(torch.ones(2, 8, device="cuda"), mesh, [Shard(0)], run_check=False)
    partial = DTensor.from_local(torch.ones(8, 8, device="cuda"), mesh, [Partial()], run_check=False)
    shards.redistribute(mesh, [Replicate()])
    shards.redistribute(mesh, [Shard(1)])
    partial.redistribute(mesh, [Shard(0)])
    partial.redistribute(mesh, [Replicate()])

    assert [(fact.kind, fact.tensors, fact.group) for fact in rank.collectives.facts] == [
        ("all_gather", "float32[2, 8]", "0-3"),
        ("all_to_all", "float32[2, 8]", "0-3"),
        ("reduce_scatter", "float32[8, 8]", "0-3"),
        ("all_reduce", "float32[8, 8]", "0-3"),
    ]


@pytest.mark.parametrize("strided", [False, True])
def test_tensors_of_a_call_are_looked_at_once(strided):
    """PyTorch is asked for each of them only where one is strided."""
    looks, asked = [], []

    class Spec:
        @property
        def placements(self):
            looks.append(self)
            return [SimpleNamespace(split_factor=2)] if strided else [SimpleNamespace()]

    schema = SimpleNamespace(args_spec=[Spec() for _ in range(50)])
    ask = _where_strided(lambda *args: asked.append(args))
    for each in range(50):
        ask(each, schema)

    assert len(looks) <= 50
    assert len(asked) == (50 if strided else 0)


def test_spawn_runs_the_rank_here():
    """The processes of a script that starts its own."""
    seen = []
    with h100(num_gpus=SIZE, world=World(rank=RANK)) as gpu:
        torch.multiprocessing.spawn(lambda rank, word: seen.append((rank, word)), args=("x",), nprocs=SIZE)

    assert seen == [(RANK, "x")]
    assert (gpu.world.rank, gpu.world.size) == (RANK, SIZE)
