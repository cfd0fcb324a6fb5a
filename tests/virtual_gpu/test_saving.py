"""Saving and loading: checkpoints come back, and cost nothing."""

import io

import pytest
import torch
from torch import nn

from peaksight.virtual_gpu.script import Scratch

from .cards import births_on, h100, requested

pytestmark = pytest.mark.torch


def trained():
    """A model on the card and its optimizer after one step."""
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(2, 64, device="cuda")).sum().backward()
    optimizer.step()
    return model, optimizer


def test_save_and_load(virtual_gpu, tmp_path):
    """What was saved comes back with its structure, shapes, dtypes, devices and the values of the host."""
    model, optimizer = trained()
    path = tmp_path / "checkpoint.pt"
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "host": torch.arange(3)}, path
    )
    loaded = torch.load(path)

    assert 3 == loaded["epoch"]
    assert [0, 1, 2] == loaded["host"].tolist()
    assert loaded["model"]["weight"].is_cuda
    assert (64, 64) == tuple(loaded["model"]["weight"].shape)
    model.load_state_dict(loaded["model"])
    optimizer.load_state_dict(loaded["optimizer"])
    optimizer.step()


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_what_requires_a_gradient(virtual_gpu, tmp_path, device):
    """A tensor that is trained still is when it comes back, and no other."""
    saved = {
        "prompt": torch.ones(4, device=device, requires_grad=True),
        "mask": torch.ones(4, device=device, dtype=torch.bool),
        "frozen": nn.Parameter(torch.ones(4, device=device, dtype=torch.int8), requires_grad=False),
    }
    torch.save(saved, tmp_path / "saved.pt")
    loaded = torch.load(tmp_path / "saved.pt")

    assert {"prompt": True, "mask": False, "frozen": False} == {key: loaded[key].requires_grad for key in loaded}


def test_small_values_on_the_card(virtual_gpu, tmp_path):
    """A counter on the card comes back with its value."""
    torch.save({"step": torch.tensor(3, device="cuda")}, tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt")

    assert loaded["step"].is_cuda
    assert 3 == loaded["step"].item()


def test_saving_takes_nothing(virtual_gpu, tmp_path):
    """Neither the card nor the disk holds the data."""
    model, _ = trained()
    with births_on(virtual_gpu) as births:
        torch.save(model.state_dict(), tmp_path / "model.pt")

    assert [] == births
    assert (tmp_path / "model.pt").stat().st_size < 1000


@pytest.mark.parametrize(
    ("map_location", "sizes"),
    [
        ("cpu", []),
        ({"cuda:0": "cpu"}, []),
        (lambda storage, location: storage, []),
        (None, [64 * 64 * 4, 64 * 4]),
        ("cuda", [64 * 64 * 4, 64 * 4]),
        ({"cpu": "cuda:0"}, [64 * 64 * 4, 64 * 4]),
        (lambda storage, location: storage.cuda(), [64 * 64 * 4, 64 * 4]),
    ],
)
def test_map_location(virtual_gpu, tmp_path, map_location, sizes):
    """Loading takes the card's memory again, but not where it is mapped to the host."""
    model, _ = trained()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    with births_on(virtual_gpu) as births:
        loaded = torch.load(tmp_path / "model.pt", map_location=map_location, weights_only=True)

    assert sizes == requested(births)
    assert ["weight", "bias"] == list(loaded)


def test_whole_model(virtual_gpu, tmp_path):
    """A pickled module comes back as a module on the card."""
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64)).cuda()
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)

    assert isinstance(loaded[0].weight, nn.Parameter)
    assert loaded(torch.ones(2, 64, device="cuda")).is_cuda


def test_buffers_in_memory(virtual_gpu):
    """Saving to and loading from a file object works, also twice."""
    buffer = io.BytesIO()
    torch.save(torch.ones(3, device="cuda"), buffer)
    for _ in range(2):
        buffer.seek(0)

        assert torch.load(buffer).is_cuda


def by_path(path):
    """`torch.save(model, path)`."""
    torch.save(torch.empty(1 << 20, device="cuda"), path)


def to_an_open_file(path):
    """`torch.save(model, file)`."""
    with open(path, "wb") as file:
        by_path(file)


def by_way_of_a_buffer(path):
    """As lightning saves, to have the file whole or not at all."""
    buffer = io.BytesIO()
    by_path(buffer)
    with open(path, "wb") as file:
        file.write(buffer.getvalue())


@pytest.mark.parametrize("save", [by_path, to_an_open_file, by_way_of_a_buffer])
def test_size_of_a_checkpoint(tmp_path, monkeypatch, save):
    """However a checkpoint of 4 MiB comes into its file, it is listed with its real size."""
    monkeypatch.chdir(tmp_path)
    with Scratch() as scratch, h100(files=scratch):
        save("model.pt")
    (written,) = scratch.writes()

    assert "model.pt" == written.path
    assert 4 << 20 <= written.bytes < (4 << 20) + 1000


def test_real_files_are_read(virtual_gpu, tmp_path):
    """A checkpoint that was there before is read for real."""
    import pickle

    with open(tmp_path / "old.pkl", "wb") as file:
        pickle.dump({"lr": 0.1}, file)
    with open(tmp_path / "old.pkl", "rb") as file:
        assert {"lr": 0.1} == pickle.load(file)


def test_tied_weights_of_a_checkpoint(virtual_gpu, tmp_path):
    """A module with tied weights is still tied when it comes back."""
    model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False)).cuda()
    model[1].weight = model[0].weight
    torch.save(model, tmp_path / "model.pt")
    with births_on(virtual_gpu) as births:
        loaded = torch.load(tmp_path / "model.pt", weights_only=False)

    assert loaded[0].weight is loaded[1].weight
    assert [64 * 64 * 4] == requested(births)


def test_safetensors(virtual_gpu, tmp_path):
    """A safetensors file is valid, has zeros for data, and can be loaded to either side."""
    safetensors_torch = pytest.importorskip("safetensors.torch")
    model, _ = trained()
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(model.state_dict(), path, metadata={"format": "pt"})
    loaded = safetensors_torch.load_file(path)

    assert {"weight", "bias"} == set(loaded)
    assert ((64, 64), torch.float32) == (tuple(loaded["weight"].shape), loaded["weight"].dtype)
    assert 64 * 64 * 4 + 64 * 4 < path.stat().st_size
    model.load_state_dict(loaded)
    assert model.weight.is_cuda


def test_a_copy_of_a_state_with_tied_weights(virtual_gpu):
    """Tensors that share a storage share that of their copies: 16,384 bytes once."""
    import copy

    weight = torch.zeros(64, 64, device="cuda")
    before = torch.cuda.memory_allocated()
    best = copy.deepcopy({"embed": weight, "head": weight.detach(), "half": weight[:32]})

    assert torch.cuda.memory_allocated() - before == 64 * 64 * 4
    assert best["half"].shape == (32, 64)
    assert best["half"].untyped_storage()._cdata == best["embed"].untyped_storage()._cdata


def test_early_stopping_copy(virtual_gpu):
    """`copy.deepcopy(model.state_dict())` keeps the best weights on the card: 16,384 bytes and 512."""
    import copy

    model, _ = trained()
    before = torch.cuda.memory_allocated()
    best = copy.deepcopy(model.state_dict())

    assert 64 * 64 * 4 + 512 == torch.cuda.memory_allocated() - before
    assert best["weight"].is_cuda
