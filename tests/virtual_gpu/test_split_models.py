"""Models that are spread over the cards of one process: by hand, by a `device_map`, and what trains them."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from .cards import card_of, events_on, h100

pytestmark = pytest.mark.torch


@pytest.fixture
def two_gpus():
    """Two H100."""
    with card_of("h100-80gb", num_gpus=2) as gpu:
        yield gpu


def stage(*sizes):
    """Linear layers between activations, of `sizes`."""
    return nn.Sequential(*(layer for size in pairwise(sizes) for layer in (nn.Linear(*size), nn.GELU())))


def train(first, second, num_steps=2):
    """A pipeline of two stages, on the devices `first` and `second`, trained for some steps."""
    bottom, top = stage(64, 512, 256).to(first), stage(256, 1024, 8).to(second)
    optimizer = torch.optim.AdamW([*bottom.parameters(), *top.parameters()], foreach=True)
    for _ in range(num_steps):
        hidden = bottom(torch.ones(32, 64, device=first))
        loss = top(hidden.to(second)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


class TestPipeline:
    """Split by hand."""

    def test_each_card_does_what_it_would_alone(self):
        """Every event on a card is that of a run in which the other stage is on the host."""
        with (
            card_of("h100-80gb", num_gpus=2) as both,
            events_on(both.devices.ledgers[0]) as first,
            events_on(both.devices.ledgers[1]) as second,
        ):
            train("cuda:0", "cuda:1")
        alone = []
        for devices in (("cuda", "cpu"), ("cpu", "cuda")):
            with h100() as gpu, events_on(gpu) as events:
                train(*devices)
            alone.append(events)

        assert [len(events) > 50 for events in alone] == [True, True]
        assert alone == [first, second]

    def test_gradients_are_where_their_parameters_are(self, two_gpus):
        """Also where the sum of two branches crosses cards."""
        first, second = (nn.Parameter(torch.ones(8, 8, device=f"cuda:{device}")) for device in (0, 1))
        (first.to("cuda:1") * second + (first * 2).to("cuda:1")).sum().backward()

        assert ["cuda:0", "cuda:1"] == [str(parameter.grad.device) for parameter in (first, second)]

    @pytest.mark.parametrize(
        "mix",
        [torch.add, torch.matmul, lambda a, b: torch.cat([a, b]), nn.functional.linear, torch.Tensor.add_],
    )
    def test_operators_want_one_device(self, two_gpus, mix):
        """What torch says of two."""
        with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.* cuda:0 and cuda:1!"):
            mix(torch.ones(4, 4, device="cuda:0"), torch.ones(4, 4, device="cuda:1"))

    @pytest.mark.parametrize("device", ["cuda:0", "cpu"])
    def test_indices_come_from_the_host_or_the_same_device(self, two_gpus, device):
        """As ATen says it."""
        tensor, index = torch.ones(4, 4, device=device), torch.zeros(2, dtype=torch.long)

        assert device == str(tensor[index].device)
        with pytest.raises(RuntimeError, match=rf"indices should be either on cpu .* \({device}\)"):
            tensor[index.to("cuda:1")]


class TestTraining:
    """Optimizers, clipping and scaling take the parameters of each card together."""

    @pytest.fixture
    def parameters(self, two_gpus):
        """Four of 1 MiB on the first card, one of 2 MiB on the second, with gradients."""
        first = [nn.Parameter(torch.ones(1 << 18, device="cuda:0")) for _ in range(4)]
        second = [nn.Parameter(torch.ones(1 << 19, device="cuda:1"))]
        for parameter in (*first, *second):
            parameter.grad = torch.ones_like(parameter)
        return [*first, *second]

    @pytest.mark.parametrize("implementation", ["foreach", "fused"])
    def test_adamw(self, parameters, implementation):
        """State is beside its parameter; the foreach form has temporaries of all parameters of a card at once."""
        before = [torch.cuda.memory_allocated(device) for device in (0, 1)]
        torch.optim.AdamW(parameters, **{implementation: True}).step()
        peaks = [torch.cuda.max_memory_allocated(device) - before[device] for device in (0, 1)]

        copies = {"fused": 2, "foreach": 3}[implementation]
        assert [copies * 4 << 20, copies * 2 << 20] == pytest.approx(peaks, abs=4096)

    def test_clipping(self, parameters):
        """The norm of all is on the device of the first gradient."""
        assert "cuda:0" == str(nn.utils.clip_grad_norm_(parameters, 1.0).device)

    def test_grad_scaler(self, parameters):
        """It has its scale and what it found on each device."""
        scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.SGD(parameters, lr=0.1)
        loss = sum(parameter.sum().to("cuda:1") for parameter in parameters)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

        assert 65536.0 == scaler.get_scale()


@pytest.mark.models
class TestDeviceMap:
    """transformers and accelerate decide which module goes where, by the memory that each card has."""

    @pytest.fixture
    def model(self, two_gpus):
        """A Llama with random weights: 4 layers between embeddings."""
        transformers = pytest.importorskip("transformers")
        sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4, "vocab_size": 512}
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_hidden_layers=4, **sizes))

    def test_inferred_from_the_memory_of_each(self, model):
        """What does not fit the first card comes to the second, and activations follow through the hooks."""
        accelerate = pytest.importorskip("accelerate")
        limits = {0: "300KiB", 1: "4MiB"}
        where = accelerate.infer_auto_device_map(model, limits, no_split_module_classes=["LlamaDecoderLayer"])
        model = accelerate.dispatch_model(model, where)
        out = model(
            input_ids=torch.zeros(2, 16, dtype=torch.long, device=0), labels=torch.zeros(2, 16, dtype=torch.long)
        )
        out.loss.backward()

        assert {0, 1} == set(where.values())
        assert all(parameter.device == parameter.grad.device for parameter in model.parameters())
        assert {"cuda:0", "cuda:1"} == {str(parameter.device) for parameter in model.parameters()}

    def test_balanced(self, model):
        """`mem_get_info` is asked for each card."""
        accelerate = pytest.importorskip("accelerate")
        torch.empty(70 << 30, dtype=torch.uint8, device="cuda:1")
        limits = accelerate.utils.get_max_memory()

        assert limits[0] == torch.cuda.mem_get_info(0)[0]
        assert limits[1] == torch.cuda.mem_get_info(1)[0] < 10 << 30
