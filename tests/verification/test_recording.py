"""What is recorded of a training, and the arithmetic it is recorded in."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from peaksight.records.training import Job
from peaksight.verification.arithmetic import Arithmetic, keep_autocast_off, widen_inputs
from peaksight.verification.batches import Batches
from peaksight.verification.distances import is_bitwise
from peaksight.verification.names import Names
from peaksight.verification.start import Start, direction

pytestmark = pytest.mark.torch

X = torch.arange(12.0).reshape(4, 3)


def columns_of(*calls):
    batches = Batches()
    for args, kwargs in calls:
        batches.add(args, kwargs)
    return [(column.samples, column.digest) for column in batches.columns()]


def double_model():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    Start.make_double(list(model.parameters()))
    return model


def job(**how):
    return Job(directory="", steps=1, **how)


class TestBatches:
    """Samples, however they reach the model."""

    def test_micro_batches_are_the_batch(self):
        """In any order, too."""
        assert columns_of(((X,), {})) == columns_of(((X[2:],), {}), ((X[:2],), {}))

    def test_another_sample_is_another_batch(self):
        """By one bit."""
        other = X.clone()
        other[3, 2] += 1

        assert columns_of(((X,), {})) != columns_of(((other,), {}))

    def test_padding_is_not_part_of_a_sample(self):
        """A micro-batch is padded to its own longest."""
        long = torch.tensor([[5, 6, 7, 0, 0], [1, 2, 3, 4, 8]])
        short = torch.tensor([[5, 6, 7, 0]])

        assert columns_of(((long[:1],), {})) == columns_of(((short,), {}))

    def test_tensors_in_mappings_and_of_bfloat16_are_seen(self):
        """As a tokenizer's output is."""
        assert [4] == [count for count, _ in columns_of((({"x": X.bfloat16()},), {}))]

    def test_what_a_model_computed_is_no_sample(self):
        """It differs by rounding."""
        assert [] == columns_of(((X.clone().requires_grad_(),), {}))


class TestArithmetic:
    """Float64 and the masks of dropout, whatever the script says."""

    def test_float32_inputs_meet_float64_weights(self):
        """And the gradients are float64."""
        model = double_model()
        with Arithmetic(job(double=True)):
            loss = nn.functional.mse_loss(model(X).float(), torch.ones(4, 2))
            loss.backward()

        assert {torch.float64} == {loss.dtype} | {parameter.grad.dtype for parameter in model.parameters()}

    @pytest.mark.parametrize("layer", [nn.Conv1d(5, 2, 3), nn.ConvTranspose1d(5, 2, 3), nn.LSTM(3, 2)])
    def test_float32_inputs_meet_layers_that_compare_dtypes(self, layer, monkeypatch):
        """Before any operator is called: convolutions and recurrent layers; so does a recomputation in the backward."""
        for name in ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
            monkeypatch.setattr(torch, name, getattr(torch, name))
            monkeypatch.setattr(nn.functional, name, getattr(nn.functional, name))
        for kind in (nn.RNN, nn.LSTM, nn.GRU):
            monkeypatch.setattr(kind, "forward", kind.forward)
        widen_inputs()
        inputs = torch.ones(1, 5, 3)
        with Arithmetic(job(double=True)):
            result = checkpoint(layer.double(), inputs, use_reentrant=False)
            result = result[0] if isinstance(layer, nn.LSTM) else result
            result.sum().backward()

        assert {torch.float64} == {result.dtype} | {parameter.grad.dtype for parameter in layer.parameters()}

    def test_the_masks_are_those_of_float32(self):
        """Else a float64 run would be of another training."""
        ones = torch.ones(1000)
        torch.manual_seed(1)
        narrow = nn.functional.dropout(ones, 0.3), torch.rand_like(ones), torch.randn_like(ones)
        with Arithmetic(job(double=True)):
            torch.manual_seed(1)
            wide = nn.functional.dropout(ones.double(), 0.3), torch.rand_like(ones.double())
            normal = torch.randn_like(ones.double())

        assert torch.equal(narrow[0] == 0, wide[0] == 0)
        assert torch.equal(narrow[1].double(), wide[1])
        assert torch.equal(narrow[2].double(), normal)

    def test_the_mean_of_a_mask_leaves_everything_as_it_is(self):
        """And draws nothing."""
        state = torch.get_rng_state()
        with Arithmetic(job(masks="mean")):
            kept = nn.functional.dropout(X, 0.25)

        assert torch.equal(X, kept)
        assert torch.equal(state, torch.get_rng_state())

    def test_autocast_rounds_no_input_of_a_model_in_float64(self, monkeypatch):
        """It casts all that is not in float64."""
        monkeypatch.setattr(torch.autocast, "__enter__", torch.autocast.__enter__)
        keep_autocast_off()
        with Arithmetic(job(double=True)), torch.autocast("cpu", torch.bfloat16):
            result = nn.functional.linear(X / 3, torch.eye(3, dtype=torch.float64))

        assert torch.equal((X / 3).double(), result)

    def test_uniform_masks_are_those_of_rand(self):
        """As scripts write them by themselves."""
        torch.manual_seed(1)
        own = X * (torch.rand(X.shape) >= 0.25) / 0.75
        with Arithmetic(job(masks="uniform")):
            torch.manual_seed(1)
            theirs = nn.functional.dropout(X, 0.25)

        torch.testing.assert_close(own, theirs)


class TestNames:
    """Parameters by the path of their module."""

    def test_frozen_parameters_of_the_model_are_known(self):
        """They have to start from the same values as well."""
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[0].requires_grad_(False)
        added = Names().add(model[1].parameters())

        assert {"0.weight", "0.bias", "1.weight", "1.bias"} == set(added)

    def test_a_second_model_has_its_class_in_front(self):
        """Two models may have the same paths."""
        one, other = nn.Linear(2, 2), nn.Linear(2, 3)
        names = Names()
        names.add(one.parameters())

        assert {"Linear.weight", "Linear.bias"} == set(names.add(other.parameters()))

    def test_a_parameter_without_a_module_has_a_name(self):
        """A script may train a bare tensor."""
        assert {"parameter 0"} == set(Names().add([torch.ones(2, requires_grad=True)]))

    def test_wrappers_leave_no_trace(self):
        """Compiled or not."""
        model = torch.compile(nn.Linear(2, 2))

        assert {"weight", "bias"} == set(Names().add(model.parameters()))


@pytest.mark.parametrize("one, other, same", [(0.0, -0.0, False), (float("nan"), float("nan"), True), (1.0, 1.0, True)])
def test_bits_are_compared_not_values(one, other, same):
    """`==` says something else about all but the last."""
    assert same == is_bitwise(torch.tensor(one), torch.tensor(other))


def test_a_direction_is_the_same_each_time_and_of_the_size_of_the_weights():
    """Forth and back are the same way."""
    weight = torch.full((1000,), 3.0)

    assert torch.equal(direction("a", weight), direction("a", weight))
    assert not torch.equal(direction("a", weight), direction("b", weight))
    assert 2 < float(direction("a", weight).std()) < 4
