"""Loading of checkpoints that were there before: mapped, with real values on the CPU, and blocks on the card."""

import io
from contextlib import suppress

import pytest
import torch
from torch import nn

from peaksight.records import Role
from peaksight.units import GIB, MIB

from .cards import anonymous_bytes, births_on, by_role, requested

pytestmark = pytest.mark.torch

SIDE = 512
WEIGHT_BYTES, STEPS_BYTES, SCALE_BYTES = SIDE * SIDE * 4, 3 * 8, 4
ON_CARD = [WEIGHT_BYTES, STEPS_BYTES, SCALE_BYTES]
BIG_GIB = 13


@pytest.fixture(scope="module", params=["zip", "old"])
def checkpoint(request, tmp_path_factory):
    """A real file in either format of torch.save: a tied weight, a view of it, small values, and an epoch."""
    weight = torch.arange(float(SIDE * SIDE)).view(SIDE, SIDE)
    saved = {"weight": weight, "tied": weight, "rows": weight[:2], "steps": torch.arange(3), "epoch": 7}
    saved["scale"] = torch.tensor(0.5)
    path = tmp_path_factory.mktemp(request.param) / "model.pt"
    torch.save(saved, path, _use_new_zipfile_serialization=request.param == "zip")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Real files of a linear layer after one step of Adam: itself, its state, and that of a whole training."""
    directory = tmp_path_factory.mktemp("trained")
    model = nn.Linear(SIDE, SIDE)
    optimizer, fused = (torch.optim.AdamW(model.parameters(), fused=fused) for fused in (False, True))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    model(torch.ones(2, SIDE)).sum().backward()
    for part in (optimizer, fused, scheduler):
        part.step()
    torch.save(model, directory / "module.pt")
    torch.save(torch.eye(SIDE).to_sparse(), directory / "sparse.pt")
    torch.save(model.state_dict(), directory / "state.pt")
    training = {"model": model, "optimizer": optimizer, "fused": fused, "scheduler": scheduler}
    training = {name: part.state_dict() for name, part in training.items()} | {"epoch": 3, "rng": torch.get_rng_state()}
    torch.save(training, directory / "training.pt")
    return directory


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    "map_location",
    ["cuda", "cuda:0", torch.device("cuda"), {"cpu": "cuda:0"}, lambda storage, location: storage.cuda()],
    ids=["name", "index", "device", "dict", "callable"],
)
def test_to_the_card(virtual_gpu, checkpoint, map_location, weights_only):
    """Each storage takes one block in the order of the file, tied ones once; small values stay known."""
    with births_on(virtual_gpu) as births:
        loaded = torch.load(checkpoint, map_location=map_location, weights_only=weights_only)

    assert ON_CARD == requested(births)
    assert {"cuda:0"} == {str(tensor.device) for name, tensor in loaded.items() if name != "epoch"}
    assert loaded["weight"].data_ptr() == loaded["tied"].data_ptr() == loaded["rows"].data_ptr()
    assert [0, 1, 2] == loaded["steps"].tolist()
    assert 0.5 == loaded["scale"].item()
    assert 7 == loaded["epoch"]


def test_memory_is_given_back(virtual_gpu, checkpoint):
    """What was loaded leaves the card with its last tensor, also when loading fails half-way."""
    places = iter(["cuda", "cuda"])
    loaded = torch.load(checkpoint, map_location="cuda")
    del loaded
    after_loading = torch.cuda.memory_allocated()
    with suppress(StopIteration):
        torch.load(checkpoint, map_location=lambda storage, location: storage.to(device=next(places)))

    assert (0, 0) == (after_loading, torch.cuda.memory_allocated())


@pytest.mark.parametrize(
    "map_location", [None, "cpu", torch.device("cpu"), {}, lambda storage, location: storage, lambda *args: None]
)
def test_to_the_host(virtual_gpu, checkpoint, map_location):
    """What stays on the CPU takes no block and has the values of the file."""
    with births_on(virtual_gpu) as births:
        loaded = torch.load(checkpoint, map_location=map_location)

    assert [] == births
    assert SIDE * SIDE - 1 == loaded["weight"][-1, -1].item()
    assert (SIDE - 1) * SIDE / 2 == loaded["rows"][0].sum().item()


@pytest.mark.parametrize("opened", ["file", "bytes"])
def test_open_files(virtual_gpu, checkpoint, opened):
    """An open file or its bytes can be given, as Lightning does."""
    with open(checkpoint, "rb") as file, births_on(virtual_gpu) as births:
        loaded = torch.load(file if opened == "file" else io.BytesIO(file.read()), map_location="cuda")

    assert ON_CARD == requested(births)
    assert 7 == loaded["epoch"]


def test_to_meta(virtual_gpu, checkpoint):
    """`map_location="meta"` gives shapes only."""
    with births_on(virtual_gpu) as births:
        loaded = torch.load(checkpoint, map_location="meta")

    assert [] == births
    assert (loaded["weight"].is_meta, (SIDE, SIDE)) == (True, tuple(loaded["weight"].shape))


def test_card_that_is_not_there(virtual_gpu, checkpoint):
    """A second card is refused in torch's words."""
    with pytest.raises(RuntimeError, match=r"CUDA device 3 but torch.cuda.device_count\(\) is 1"):
        torch.load(checkpoint, map_location="cuda:3")


def test_memory_map_asked_for(virtual_gpu, checkpoint):
    """`mmap=True` works for the zip format and is refused for the other, as ever."""
    if checkpoint.parent.name.startswith("old"):
        with pytest.raises(RuntimeError, match="mmap can only be used"):
            torch.load(checkpoint, mmap=True)
    else:
        assert 1.0 == torch.load(checkpoint, mmap=True)["weight"][0, 1].item()


def test_missing_file(virtual_gpu):
    """A file that is not there is the script's error."""
    with pytest.raises(FileNotFoundError, match=r"missing\.pt"):
        torch.load("missing.pt")


def test_file_of_the_person_is_not_written(virtual_gpu, checkpoint):
    """What the script does to a mapped tensor stays in memory, even if it asks for a shared mapping."""
    before = checkpoint.read_bytes()
    with torch.serialization.set_default_mmap_options(1):  # MAP_SHARED
        torch.load(checkpoint)["steps"].fill_(9)

    assert before == checkpoint.read_bytes()


def test_tensors_of_files(virtual_gpu, tmp_path):
    """`torch.from_file` reads a file, makes one that is shared, and never writes to one."""
    (tmp_path / "numbers").write_bytes(torch.arange(4, dtype=torch.int32).numpy().tobytes())
    numbers = torch.from_file(str(tmp_path / "numbers"), shared=True, size=4, dtype=torch.int32)
    numbers += 1
    made = torch.from_file(str(tmp_path / "made"), shared=True, size=3)
    made.fill_(2.0)

    assert [1, 2, 3, 4] == numbers.tolist()
    assert (12, 6.0) == ((tmp_path / "made").stat().st_size, made.sum().item())
    assert 1 == torch.from_file(str(tmp_path / "numbers"), size=4, dtype=torch.int32)[1].item()


def test_inside_a_constructor(virtual_gpu, checkpoint):
    """A module that loads a checkpoint in its `__init__` gets real tensors."""

    class Pretrained(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = torch.load(checkpoint)["steps"].tolist()

    assert [0, 1, 2] == Pretrained().steps


def test_whole_module(virtual_gpu, trained):
    """A pickled module comes to the card block by block."""
    with births_on(virtual_gpu) as births:
        loaded = torch.load(trained / "module.pt", weights_only=False, map_location="cuda")

    assert [WEIGHT_BYTES, SIDE * 4] == requested(births)
    assert loaded(torch.ones(2, SIDE, device="cuda")).is_cuda
    assert isinstance(loaded.weight, nn.Parameter)


@pytest.fixture(scope="module")
def big_file(tmp_path_factory):
    """A zip checkpoint of 13 GiB with a hole where the data would be."""
    path = tmp_path_factory.mktemp("big") / "big.pt"
    with torch._subclasses.FakeTensorMode(), torch.serialization.skip_data(materialize_fake_tensors=True):
        torch.save({f"layer.{i}": torch.empty(GIB // 8, dtype=torch.float32) for i in range(2 * BIG_GIB)}, path)
    return path


def test_big_files_are_not_read(virtual_gpu, big_file):
    """13 GiB are loaded, cast, copied, saved, loaded again and moved to the card in a few MiB of host memory."""
    before = anonymous_bytes()
    loaded = torch.load(big_file, map_location="cpu")
    halves = {name: tensor.half() for name, tensor in loaded.items()}
    copies = {name: tensor.clone() for name, tensor in loaded.items()}
    torch.save({"model": loaded, "halves": halves}, big_file.with_name("again.pt"))
    again = torch.load(big_file.with_name("again.pt"))["model"]
    with births_on(virtual_gpu) as births:
        moved = [tensor.cuda() for tensor in copies.values()] + [tensor.cuda() for tensor in again.values()]

    assert 2 * BIG_GIB * GIB == sum(requested(births)) == sum(tensor.nbytes for tensor in moved)
    assert {torch.float16} == {tensor.dtype for tensor in halves.values()}
    assert 256 * MIB > anonymous_bytes() - before


def test_values_of_small_files_survive_copies(virtual_gpu, checkpoint):
    """Data of a moderate size is converted for real: its values may decide shapes."""
    doubled = torch.load(checkpoint)["weight"].double().clone()

    assert SIDE * SIDE - 1 == (doubled > 0).sum().item()


def test_sparse(virtual_gpu, trained):
    """A sparse tensor comes to the card as its indices and its values."""
    with births_on(virtual_gpu) as births:
        loaded = torch.load(trained / "sparse.pt", map_location="cuda")

    assert loaded.is_cuda and loaded.is_sparse
    assert [2 * SIDE * 8, SIDE * 4] == requested(births)[:2]


def test_state_dict_on_the_host(virtual_gpu, big_file):
    """The full state copied to the CPU, cast and saved takes no host memory either."""
    state = torch.load(big_file, map_location="cuda")
    before = anonymous_bytes()
    on_host = {name: tensor.to("cpu", torch.float16) for name, tensor in state.items()}
    torch.save({name: tensor.clone() for name, tensor in on_host.items()}, big_file.with_name("host.pt"))

    assert {"cpu"} == {tensor.device.type for tensor in on_host.values()}
    assert 256 * MIB > anonymous_bytes() - before


# Into modules and optimizers.


@pytest.mark.parametrize(("map_location", "num_bytes"), [("cpu", 0), ("cuda", WEIGHT_BYTES + SIDE * 4)])
def test_load_state_dict(virtual_gpu, trained, map_location, num_bytes):
    """Copying into a module on the card takes nothing but what a checkpoint on the card takes itself."""
    model = nn.Linear(SIDE, SIDE).cuda()
    with births_on(virtual_gpu) as births:
        result = model.load_state_dict(torch.load(trained / "state.pt", map_location=map_location))

    assert num_bytes == sum(requested(births))
    assert ([], []) == (result.missing_keys, result.unexpected_keys)


def test_strict(virtual_gpu, trained):
    """Missing and unexpected names are the script's error, or a result."""
    state = torch.load(trained / "state.pt")
    state["other"] = state.pop("bias")
    model = nn.Linear(SIDE, SIDE).cuda()
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "bias"'):
        model.load_state_dict(state)

    assert (["bias"], ["other"]) == tuple(model.load_state_dict(state, strict=False))


def test_assign(virtual_gpu, trained):
    """`assign=True` makes the loaded tensors the parameters of a module on meta."""
    with torch.device("meta"):
        model = nn.Linear(SIDE, SIDE)
    with births_on(virtual_gpu) as births:
        model.load_state_dict(torch.load(trained / "state.pt", map_location="cuda"), assign=True)
    model(torch.ones(2, SIDE, device="cuda")).sum().backward()

    assert [WEIGHT_BYTES, SIDE * 4] == requested(births)
    assert model.weight.is_cuda and model.weight.grad.is_cuda
    assert WEIGHT_BYTES + SIDE * 4 == by_role(virtual_gpu, Role.PARAMETER)


def test_parameters_made_by_type(virtual_gpu, trained):
    """`type(parameter)(data)`, as accelerate writes it, makes a parameter."""
    model = nn.Linear(SIDE, SIDE)
    state = torch.load(trained / "state.pt", map_location="cuda")
    parameter = type(model.weight)(state["weight"], requires_grad=False)

    assert isinstance(parameter, nn.Parameter)
    assert parameter.is_cuda and not parameter.requires_grad


@pytest.mark.parametrize("map_location", ["cpu", "cuda"])
@pytest.mark.parametrize("saved", ["optimizer", "fused"])
def test_resume(virtual_gpu, trained, map_location, saved):
    """The optimizer's state moves to the card as torch moves it; its step counts if a fused step reads them there."""
    model = nn.Linear(SIDE, SIDE).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    training = torch.load(trained / "training.pt", map_location=map_location)
    model.load_state_dict(training["model"])
    optimizer.load_state_dict(training[saved])
    scheduler.load_state_dict(training["scheduler"])
    torch.set_rng_state(training["rng"].cpu())
    model(torch.ones(2, SIDE, device="cuda")).sum().backward()
    optimizer.step()
    state = optimizer.state[model.weight]

    assert (3, 1) == (training["epoch"], scheduler.last_epoch)
    assert state["step"].is_cuda is (map_location == "cuda" or saved == "fused")
    assert state["exp_avg"].is_cuda and state["exp_avg_sq"].is_cuda
    assert 2 * (WEIGHT_BYTES + SIDE * 4) <= by_role(virtual_gpu, Role.OPTIMIZER_STATE)
