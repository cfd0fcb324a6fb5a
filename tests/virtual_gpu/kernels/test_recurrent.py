"""Recurrent layers, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import copy

import pytest
import torch
from torch import nn

from peaksight.records import Role

from ..cards import births_on, by_role, card_of, events_on, requested, slugs

pytestmark = pytest.mark.torch

HALF, BFLOAT, SINGLE = torch.float16, torch.bfloat16, torch.float32


def run_on(gpu, layer, *, dtype=SINGLE, shape=(16, 50, 80), state=True):
    """The events of a forward and of a backward pass through the output and, with `state`, the last states."""
    layer = layer.to("cuda", dtype)
    sequence = torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)
    with events_on(gpu) as forward:
        out, last = layer(sequence)
    outputs = [out, *((last if isinstance(last, tuple) else (last,)) if state else ())]
    gradients = [torch.ones_like(output) for output in outputs]
    with events_on(gpu) as backward:
        torch.autograd.backward(outputs, gradients)
    return forward, backward


def test_lstm(virtual_gpu):
    """Forward keeps its output, states and reserve; backward makes one buffer of all gradients of weights."""
    forward, backward = run_on(virtual_gpu, nn.LSTM(80, 200, batch_first=True))

    assert forward == [
        12800, 12800, 256000, 640000, 12800, 12800, 12868992, 3200256, -12868992, -256000,
    ]  # fmt: skip
    assert backward == [
        256000, 256000, 12800, 12800, 12868992, -12868992, -256000, 256000, 902400, 12868992, -12868992, -256000,
        -12800, -12800, -12800, -12800, -3200256, 256000, -256000,
    ]  # fmt: skip
    assert "recurrent-layers" not in slugs(virtual_gpu)


def test_gru_in_both_directions(virtual_gpu):
    """It has no cell state."""
    forward, _ = run_on(virtual_gpu, nn.GRU(80, 200, batch_first=True, bidirectional=True))

    assert [25600, 256000, 1280000, 25600, 26236800, 7680256, -26236800, -256000] == forward


def test_plain_network_with_steps_first(virtual_gpu):
    """Its input is contiguous, and nothing is copied."""
    forward, backward = run_on(virtual_gpu, nn.RNN(256, 512, nonlinearity="relu"), shape=(128, 64, 256))

    assert [131072, 16777216, 131072, 94503680, 16777472, -94503680] == forward
    assert [8388608, 131072, 94503680, -94503680, 1576960, 94503680, -94503680, -131072, -131072, -16777472] == backward


def test_weights_in_bfloat16(virtual_gpu):
    """They are not flattened: each call makes a buffer of 451,200 bytes, which backward needs."""
    forward, backward = run_on(virtual_gpu, nn.LSTM(80, 200, batch_first=True), dtype=BFLOAT)

    assert [6400, 6400, 128000, 320000, 6400, 6400, 451200, 10628992, 1600256, -10628992, -128000] == forward
    assert -451200 in backward


def test_gradients_without_biases(virtual_gpu):
    """They are copies, for the buffer has room for biases."""
    _, backward = run_on(virtual_gpu, nn.LSTM(80, 200, batch_first=True, bias=False))

    assert backward == [
        256000, 256000, 12800, 12800, 12868992, -12868992, -256000, 256000, 902400, 12868992, 256000, 640000,
        -12868992, -902400, -256000, -12800, -12800, -12800, -12800, -3200256, 256000, -256000,
    ]  # fmt: skip


def test_projection(virtual_gpu):
    """Hidden states are as wide as their projection, cell states are not."""
    forward, _ = run_on(virtual_gpu, nn.LSTM(80, 200, batch_first=True, proj_size=64), dtype=HALF)

    assert [2048, 6400, 128000, 102400, 2048, 6400, 10530688, 2022656, -10530688, -128000] == forward


def test_missing_gradients_are_zeros(virtual_gpu):
    """A loss of the output alone: 2 layers of 64 times 512 states of either kind are made before the gradients."""
    layer = nn.LSTM(256, 512, 2, dropout=0.2)
    _, backward = run_on(virtual_gpu, layer, shape=(9, 64, 256), state=False)

    assert backward == [
        262144, 262144, 589824, 262144, 262144, 41747200, -41747200, 14712832, 41747200, -41747200, -262144, -262144,
        -262144, -262144, -262144, -262144, -13013248,
    ]  # fmt: skip


def test_state_of_dropout(virtual_gpu):
    """The first layer that drops makes it, for all; it stays."""
    layers = [nn.LSTM(8, 16, 2, dropout=0.2).cuda() for _ in range(2)]
    with events_on(virtual_gpu) as events:
        for layer in layers:
            layer(torch.randn(3, 4, 8, device="cuda"))

    assert [8, -8, 6488064] == events[events.index(8) :][:3]
    assert 1 == events.count(6488064)
    assert -6488064 not in events


def test_inference(virtual_gpu):
    """An evaluated layer keeps no reserve, one in training does even without gradients."""
    layer, sequence = nn.LSTM(80, 200, 2).cuda(), torch.randn(50, 16, 80, device="cuda")
    with torch.no_grad(), events_on(virtual_gpu) as training:
        kept = layer(sequence)
    with torch.no_grad(), events_on(virtual_gpu) as evaluated:
        kept = layer.eval()(sequence)

    assert [
        25600, 25600, 640000, 25600, 25600, 22665600, 7040256, -22665600, -7040256, -25600, -25600,
    ] == training  # fmt: skip
    assert [25600, 25600, 640000, 25600, 25600, 22665600, -22665600, -25600, -25600] == evaluated[:9]
    assert not kept[0].requires_grad


def test_inference_mode(virtual_gpu):
    """cuDNN runs the layer there, too."""
    layer, sequence = nn.GRU(80, 200, 2).cuda().eval(), torch.randn(50, 16, 80, device="cuda")
    with torch.inference_mode(), births_on(virtual_gpu) as births:
        layer(sequence)

    assert "aten::_cudnn_rnn" in {birth.op for birth in births}


def test_packed_sequences(virtual_gpu):
    """cuDNN reads 521 of 800 rows: its reserve and workspace are smaller."""
    layer, sequence = nn.LSTM(80, 200, 2).cuda(), torch.randn(50, 16, 80, device="cuda", requires_grad=True)
    lengths = torch.linspace(50, 16, 16).long()
    with events_on(virtual_gpu) as forward:
        packed, last = layer(nn.utils.rnn.pack_padded_sequence(sequence, lengths))
    gradients = [torch.ones_like(output) for output in (packed.data, *last)]
    with events_on(virtual_gpu) as backward:
        torch.autograd.backward([packed.data, *last], gradients)

    assert forward == [
        9600, 8960, 8320, 11520, 7040, 6400, 5760, 7680, 4480, 3840, 3200, 3840, 1920, 1280, 960, 166720,
        -9600, -8960, -8320, -11520, -7040, -6400, -5760, -7680, -4480, -3840, -3200, -3840, -1920, -1280, -960,
        25600, 25600, 416800, 25600, 25600, 20774272, 4585056, -20774272,
    ]  # fmt: skip
    assert backward == [
        166720, 25600, 25600, 20774272, -20774272, 2188800, 20774272, -20774272, -25600, -25600, -25600, -25600,
        -166720, -4585056, 256000, -166720,
    ]  # fmt: skip


def test_autocast(virtual_gpu):
    """All weights are cast into one buffer; their gradients come back one by one."""
    layer, sequence = nn.LSTM(80, 200, 2).cuda(), torch.randn(50, 16, 80, device="cuda", requires_grad=True)
    with events_on(virtual_gpu) as forward, torch.autocast("cuda"):
        out, last = layer(sequence)
    gradients = [torch.ones_like(output) for output in (out, *last)]
    with events_on(virtual_gpu) as backward:
        torch.autograd.backward([out, *last], gradients)

    assert forward == [
        25600, 25600, 1094400, 12800, 12800, 128000, 320000, 12800, 12800, 19721600, 3520256, -19721600, -25600, -25600,
    ]  # fmt: skip
    assert backward == [
        128000, 12800, 12800, 19721600, -19721600, 1094400, 19721600, -19721600, -12800, -12800, -12800, -12800,
        -128000, -3520256, -1094400, 256000, -128000, 3200, 3200, 640000, 640000, 3200, 3200, 640000, 256000, -1094400,
    ]  # fmt: skip


def test_autocast_to_bfloat16(virtual_gpu):
    """Recurrent layers are cast to half precision whatever autocast casts to."""
    with torch.autocast("cuda", BFLOAT):
        out, _ = nn.LSTM(8, 16).cuda()(torch.randn(3, 4, 8, device="cuda"))

    assert HALF == out.dtype


def test_moved_weights_are_flattened(virtual_gpu):
    """Each weight arrives, one buffer is taken, and the weights are freed one after the other: they are views of it."""
    layer = nn.LSTM(256, 512, 2)
    with events_on(virtual_gpu) as events:
        layer.cuda()

    weights = [2097152, 4194304, 8192, 8192, 4194304, 4194304, 8192, 8192]
    assert [*weights, 14712832, *(-num_bytes for num_bytes in weights)] == events
    assert 14712832 == by_role(virtual_gpu, Role.PARAMETER)


def test_where_weights_lie(virtual_gpu):
    """The matrices of all layers come first, then the biases."""
    layer = nn.LSTM(5, 7, 2, proj_size=3, bidirectional=True, device="cuda")
    offsets = [weight.storage_offset() for weight in layer.parameters()]

    assert [0, 140, 1036, 1064, 224, 245, 385, 1092, 1120, 469] == offsets[:10]


def test_copied_weights_are_compacted_at_every_call(virtual_gpu):
    """Until `flatten_parameters` makes them views of one buffer again."""
    layer, sequence = copy.deepcopy(nn.GRU(8, 16).cuda()), torch.randn(3, 4, 8, device="cuda")
    num_bytes = 4 * (3 * 16 * (8 + 16) + 6 * 16)
    with births_on(virtual_gpu) as copied:
        layer(sequence)
    layer.flatten_parameters()
    with births_on(virtual_gpu) as flat:
        layer(sequence)

    assert num_bytes in requested(copied)
    assert num_bytes not in requested(flat)


def test_backward_of_an_evaluated_layer_fails(virtual_gpu):
    """As on the card: there is no reserve."""
    layer = nn.LSTM(8, 16).cuda().eval()
    out, _ = layer(torch.randn(3, 4, 8, device="cuda"))

    with pytest.raises(RuntimeError, match="only be called in training mode"):
        out.sum().backward()


def test_gradients_reach_every_weight(virtual_gpu):
    """In the shape of the weight, and the optimizer steps."""
    layer = nn.LSTM(8, 16, 2, bidirectional=True).cuda()
    layer(torch.randn(3, 4, 8, device="cuda"))[0].sum().backward()
    torch.optim.Adam(layer.parameters()).step()

    assert all(weight.grad.shape == weight.shape for weight in layer.parameters())


@pytest.mark.parametrize("why", ["card", "float64", "cudnn is off"])
def test_what_was_never_measured_is_listed(why):
    """Another generation of cards, double precision, and layers that cuDNN does not run."""
    dtype = torch.float64 if why == "float64" else SINGLE
    card = card_of("a100-80gb" if why == "card" else "h100-80gb")
    with card as gpu, torch.backends.cudnn.flags(enabled=why != "cudnn is off"):
        nn.LSTM(8, 16).to("cuda", dtype)(torch.randn(3, 4, 8, device="cuda", dtype=dtype))

    assert "recurrent-layers" in slugs(gpu)
