"""The kinds of operators, and what they reach."""

import pytest
import torch

from peaksight.gpus import find_card
from peaksight.virtual_gpu.timing.efficiencies import MEASURED_ON, Kind, Reach, _read, efficiencies, measured_on
from peaksight.virtual_gpu.timing.kinds import _VARIANTS, arithmetic_of, kind_of
from peaksight.virtual_gpu.timing.roofline import cost_of, seconds_of
from peaksight.virtual_gpu.timing.work import Work

pytestmark = pytest.mark.torch
aten = torch.ops.aten
ARITHMETICS = ("half", "tf32", "fp32", "double", "fp8")


def meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")


def kind(func, *args, **kwargs):
    return kind_of(func, args, kwargs, func(*args, **kwargs))


def convolution(images, weight, groups=1):
    return kind(aten.convolution.default, images, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups)


def test_by_name():
    """What no kind lists is pointwise."""
    assert kind(aten.mm.default, meta(8, 8), meta(8, 8)) == "matmul"
    assert kind(aten._foreach_add.Scalar, [meta(8)], 1.0) == "foreach"
    assert kind(aten.sin.default, meta(8)) == "pointwise"


def test_by_how_arguments_lie():
    """Broadcast, cast and transposed operands are not vectorised; odd rows keep tensor cores from a matrix."""
    half = torch.bfloat16

    assert kind(aten.add.Tensor, meta(4, 8), meta(8)) == "strided"
    assert kind(aten.add.Tensor, meta(4, 8), meta(8, 4).t()) == "transposed"
    assert kind(aten._to_copy.default, meta(8), dtype=half) == "cast"
    assert kind(aten.mm.default, meta(8, 8, dtype=half), meta(8, 9, dtype=half)) == "matmul_unaligned"


def test_convolutions():
    """By groups, channels and layout."""
    images, weight = meta(2, 16, 8, 8), meta(16, 16, 3, 3)
    last = {"memory_format": torch.channels_last}

    assert convolution(images, weight) == "convolution"
    assert convolution(images.contiguous(**last), weight.contiguous(**last)) == "last_convolution"
    assert convolution(images, meta(16, 1, 3, 3), groups=16) == "grouped_convolution"
    assert convolution(meta(2, 3, 8, 8), meta(16, 3, 3, 3)) == "thin_convolution"


def test_arithmetic():
    """That of the first floating-point tensor, whatever indices come before it."""
    indices = torch.empty(3, dtype=torch.int64, device="meta")

    assert arithmetic_of((indices, meta(8, dtype=torch.float16)), None) == "half"
    assert arithmetic_of((meta(8),), None) == "fp32"
    assert arithmetic_of((indices,), None) == "fp32"


@pytest.mark.parametrize("name", MEASURED_ON)
def test_every_kind_reaches_something_in_every_arithmetic(name):
    """Its own figure, or the nearest."""
    assert set(measured_on(name).kinds) == set(_read("operators"))
    for each in measured_on(name).kinds.values():
        for arithmetic in ARITHMETICS:
            reach = each.reach(arithmetic)
            assert reach.seconds > 0 < reach.bandwidth <= 1
            assert reach.bandwidth_in_l2 <= 2
            assert reach.flops <= 1


def test_every_variant_is_a_kind():
    """Those that are told by their arguments."""
    assert set(_VARIANTS) <= set(_read("operators"))


def test_other_cards_reach_what_the_most_alike_does():
    """By the bandwidth that each multiprocessor has."""
    reached = {name: efficiencies(find_card(name)).card for name in ("h100-80gb", "h200", "h200-nvl", "b200", "t4")}

    assert reached["h100-80gb"] == reached["t4"] == "NVIDIA H100 80GB HBM3"
    assert reached["h200"] == reached["h200-nvl"] == reached["b200"] == "NVIDIA H200"


def test_roofline():
    """A constant for each kernel, and the longer of computing and moving."""
    card = find_card("h100-80gb")
    half = Kind(name="", reaches={"fp32": Reach(seconds=1.0, bandwidth=0.5, bandwidth_in_l2=1.0, flops=0.5)})
    bandwidth, flop_per_second = card.bandwidth_bytes_per_second, int(card.fp32_flop_per_second)

    assert seconds_of(Work(0, 0, 3), half, "fp32", card) == 3.0
    assert seconds_of(Work(flop_per_second, 0, 1), half, "fp32", card) == pytest.approx(3.0)
    assert seconds_of(Work(flop_per_second, 5 * bandwidth, 1), half, "fp32", card) == pytest.approx(11.0)
    assert seconds_of(Work(flop_per_second, 0, 1, skips_half=True), half, "fp32", card) == pytest.approx(2.0)


def test_tensor_lists_take_the_host_longer():
    """By their number, and more where tensors are made."""
    card, tensors = find_card("h100-80gb"), [meta(8) for _ in range(100)]
    in_place = cost_of(aten._foreach_add_.Scalar, (tensors, 1.0), {}, None, card)
    made = cost_of(aten._foreach_sqrt.default, (tensors,), {}, tensors, card)
    one = cost_of(aten._foreach_add_.Scalar, (tensors[:1], 1.0), {}, None, card)

    assert one.host_seconds < in_place.host_seconds < made.host_seconds
