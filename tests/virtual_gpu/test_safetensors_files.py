"""safetensors files: mapped on the CPU, blocks on the card, and written without data."""

import pytest
import torch
from torch import nn

from peaksight.records import Phase
from peaksight.units import GIB, MIB
from peaksight.virtual_gpu.weights.safetensors_files import write_without_data

from .cards import anonymous_bytes, births_on, h100, requested

safetensors = pytest.importorskip("safetensors")
safetensors_torch = pytest.importorskip("safetensors.torch")

pytestmark = pytest.mark.torch

SIDE = 512
WEIGHT_BYTES, BIAS_BYTES = SIDE * SIDE * 4, SIDE * 4
BIG_GIB = 13


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A real file with values."""
    path = tmp_path_factory.mktemp("safetensors") / "model.safetensors"
    weight = torch.arange(float(SIDE * SIDE)).view(SIDE, SIDE)
    safetensors_torch.save_file({"weight": weight, "bias": torch.ones(SIDE)}, path, metadata={"format": "pt"})
    return path


@pytest.fixture(scope="module")
def big_file(tmp_path_factory):
    """13 GiB without data."""
    path = tmp_path_factory.mktemp("big") / "big.safetensors"
    write_without_data({f"layer.{i}": torch.empty(GIB // 4, device="meta") for i in range(BIG_GIB)}, path)
    return path


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:0", 0, torch.device("cuda")], ids=str)
def test_load_file(virtual_gpu, checkpoint, device):
    """Each tensor takes one block on the card, in the order of the file, and none on the CPU."""
    with births_on(virtual_gpu) as births:
        loaded = safetensors_torch.load_file(checkpoint, device=device)

    assert sorted([] if device == "cpu" else [WEIGHT_BYTES, BIAS_BYTES]) == sorted(requested(births))
    assert {"cpu" if device == "cpu" else "cuda:0"} == {str(tensor.device) for tensor in loaded.values()}


def test_values_on_the_host(virtual_gpu, checkpoint):
    """What stays on the CPU has the values of the file."""
    loaded = safetensors_torch.load_file(checkpoint)

    assert SIDE * SIDE - 1 == loaded["weight"][-1, -1].item()
    assert SIDE == loaded["bias"].sum().item()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_safe_open(virtual_gpu, checkpoint, device):
    """Names, metadata, tensors and slices; a slice takes a block of its own size."""
    with births_on(virtual_gpu) as births, safetensors.safe_open(checkpoint, framework="pt", device=device) as file:
        names, metadata = set(file.keys()), file.metadata()
        rows = file.get_slice("weight")
        shape, some = rows.get_shape(), rows[:2]
        bias = file.get_tensor("bias")

    assert ({"weight", "bias"}, {"format": "pt"}) == (names, metadata)
    assert ([SIDE, SIDE], (2, SIDE), (SIDE,)) == (shape, tuple(some.shape), tuple(bias.shape))
    assert ([] if device == "cpu" else [2 * SIDE * 4, SIDE * 4]) == requested(births)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_load_model(virtual_gpu, checkpoint, device):
    """Into a module on the card."""
    model = nn.Linear(SIDE, SIDE).cuda()
    missing, unexpected = safetensors_torch.load_model(model, checkpoint, device=device)

    assert (set(), []) == (missing, unexpected)
    assert model.weight.is_cuda


def test_torch_load_of_a_safetensors_file(virtual_gpu, checkpoint):
    """torch.load hands such a file to the library."""
    with births_on(virtual_gpu) as births:
        torch.load(checkpoint, map_location="cuda")

    assert WEIGHT_BYTES + BIAS_BYTES == sum(requested(births))


def test_other_frameworks(virtual_gpu, checkpoint):
    """numpy arrays are read as they are."""
    with safetensors.safe_open(checkpoint, framework="np") as file:
        assert SIDE == file.get_tensor("bias").sum()


def test_big_files_are_not_read(virtual_gpu, big_file):
    """13 GiB on the CPU, cast, and on the card, in a few MiB of host memory."""
    before = anonymous_bytes()
    halves = {name: tensor.half() for name, tensor in safetensors_torch.load_file(big_file).items()}
    with births_on(virtual_gpu) as births:
        loaded = safetensors_torch.load_file(big_file, device="cuda")
        with safetensors.safe_open(big_file, framework="pt", backend="pread") as file:
            part = file.get_slice("layer.0")[...].to("cuda", torch.bfloat16)

    assert BIG_GIB * GIB + GIB // 2 == sum(requested(births))
    assert (torch.float16, torch.bfloat16) == (halves["layer.0"].dtype, part.dtype)
    assert BIG_GIB == len(loaded)
    assert 256 * MIB > anonymous_bytes() - before


def test_small_values_are_saved(virtual_gpu, tmp_path):
    """A step counter or a scale comes back as it was, also from the card."""
    saved = {"step": torch.tensor(3, device="cuda"), "scale": torch.tensor([0.5, 2.0]), "flag": torch.tensor(True)}
    safetensors_torch.save_file(saved | {"weight": torch.ones(SIDE, SIDE).cuda()}, tmp_path / "state.safetensors")
    loaded = safetensors_torch.load_file(tmp_path / "state.safetensors")

    assert (3, [0.5, 2.0], True) == (loaded["step"].item(), loaded["scale"].tolist(), loaded["flag"].item())
    assert (SIDE, SIDE) == tuple(loaded["weight"].shape)


def test_nothing_to_save(virtual_gpu, tmp_path):
    """An empty file is valid."""
    safetensors_torch.save_file({}, tmp_path / "empty.safetensors")

    assert {} == safetensors_torch.load_file(tmp_path / "empty.safetensors")


def test_copies_made_for_saving_belong_to_the_phase_of_saving(virtual_gpu, tmp_path):
    """`save_model` makes what is not contiguous so, on the card."""
    model = nn.Linear(SIDE, SIDE).cuda()
    model.weight = nn.Parameter(model.weight.t())
    with births_on(virtual_gpu) as births:
        safetensors_torch.save_model(model, tmp_path / "model.safetensors")

    assert [(WEIGHT_BYTES, Phase.SAVE)] == [(birth.requested_bytes, birth.phase) for birth in births]


def test_names_taken_during_a_run_work_after_it(tmp_path):
    """A library that was imported in a run, with `from safetensors.torch import save_file`, saves values after it."""
    with h100():
        from_import = safetensors_torch.save_file, safetensors.safe_open
    save_file, safe_open = from_import
    save_file({"weight": torch.ones(SIDE, SIDE)}, tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert SIDE * SIDE == file.get_tensor("weight").sum().item()
