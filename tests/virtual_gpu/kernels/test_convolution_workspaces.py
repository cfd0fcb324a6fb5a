"""The workspaces of convolutions, against an H100 and an H200 (torch 2.11+cu130, cuDNN 9.19, 2026-11-28)."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.virtual_gpu.cards import births_on, card_of, h100, requested, slugs

pytestmark = pytest.mark.torch


def workspaces(input, weight, layout=torch.contiguous_format, dtype=torch.float16, card=h100, **options):
    """The blocks taken beside the results by the forward and by the backward of one convolution."""
    with card() as gpu:
        x = torch.randn(input, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        w = torch.randn(weight, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        convolve = getattr(F, f"conv{len(weight) - 2}d")
        with births_on(gpu) as forward:
            out = convolve(x, w, **options)
        gradient = torch.ones_like(out)
        with births_on(gpu) as backward:
            out.backward(gradient)
    return tuple([size for size in requested(births) if size not in (t.nbytes for t in (out, x, w))]
                 for births in (forward, backward))  # fmt: skip


def test_tensors_are_copied_to_channels_last():
    """64 channels of 56 x 56, a batch of 16 in half: input, output and weight, and 16 bytes."""
    forward, backward = workspaces((16, 64, 56, 56), (64, 64, 3, 3), padding=1)

    assert forward == [12_918_800]
    assert backward[0] == 12_918_800
    assert 14_836_391 == pytest.approx(backward[1], rel=0.02)


@pytest.mark.parametrize(
    ("shape", "weight", "stride", "padding", "forward", "of_weight"),
    [
        ((16, 64, 128, 128), (64, 64, 7, 7), 2, 3, 67_911_700, 92_719_616),
        ((16, 512, 128, 128), (512, 512, 7, 7), 2, 3, 588_251_136, 671_089_152),
        ((16, 512, 128, 128), (512, 512, 8, 8), 4, 0, 603_980_288, 568_361_472),
    ],
)
def test_large_windows_in_single_precision(shape, weight, stride, padding, forward, of_weight):
    """Channels last are no help: input and weight are copied, and the input and `y` for the gradient of the weight.

    How often that is split beside the copies is not the same in all (benchmarks/kernels/usual_channels.py).
    """
    single = {"dtype": torch.float32, "stride": stride, "padding": padding}
    ahead, backward = workspaces(shape, weight, torch.channels_last, **single)

    assert [forward] == pytest.approx(ahead, abs=1024)
    assert of_weight == pytest.approx(backward[-1], rel=0.3)


@pytest.mark.parametrize(
    ("shape", "filters", "side", "padding", "of_weight"),
    [
        ((32, 64, 14, 14), 64, 3, 1, 10_027_008),
        ((8, 128, 28, 28), 128, 3, 1, 16_809_984),
        ((1, 256, 32, 32), 256, 3, 1, 14_155_776),
        ((2, 80, 56, 56), 256, 3, 1, 21_915_648),
        ((64, 32, 4, 4), 128, 3, 1, 2_064_384),
        ((512, 64, 9, 9), 64, 3, 0, 157_417_472),
        ((32, 64, 14, 14), 64, 5, 2, 37_257_216),
        ((16, 256, 32, 32), 64, 5, 2, 557_842_432),
        ((2, 32, 128, 128), 32, 5, 2, 545_259_520),
    ],
)
def test_gradients_of_weights_by_a_transform(shape, filters, side, padding, of_weight):
    """In single precision small images go by Winograd's transform, windows of five by five to few filters by Fourier's.

    Measured on an H200 (benchmarks/kernels; the sixth in a network for Atari games). To the byte.
    """
    weight = (filters, shape[1], side, side)
    _, backward = workspaces(shape, weight, dtype=torch.float32, padding=padding)

    assert backward[-1] == of_weight


@pytest.mark.parametrize(
    ("shape", "filters", "sums"),
    [
        ((64, 64, 56, 56), 64, 1_917_936),
        ((64, 256, 56, 56), 64, 7_668_720),
        ((16, 96, 80, 80), 96, 7_668_720),
        ((16, 128, 112, 112), 128, 7_668_720),
        ((8, 256, 56, 56), 256, 7_078_896),
        ((16, 256, 64, 64), 256, 16_516_080),
        ((32, 256, 14, 14), 256, 496),
        ((8, 512, 28, 28), 512, 496),
    ],
)
def test_partial_sums_in_half(shape, filters, sums):
    """Of whole tiles for each tap, where there are positions enough; measured beside copies on an H200."""
    _, backward = workspaces(shape, (filters, shape[1], 3, 3), dtype=torch.bfloat16, padding=1)
    copies = 2 * (math.prod(shape) + math.prod(shape) * filters // shape[1] + 9 * filters * shape[1])

    assert backward[-1] - copies == pytest.approx(sums, abs=1024)


@pytest.mark.parametrize(
    ("shape", "filters", "of_weight"),
    [
        ((2, 1280, 16, 16), 1280, 2_621_952),
        ((1, 1024, 14, 14), 2048, 1_204_736),
        ((32, 832, 7, 7), 128, 3_011_072),
        ((64, 768, 24, 24), 640, 125_829_120),
        ((256, 512, 28, 28), 512, 268_435_456),
    ],
)
def test_single_taps_in_half_go_image_by_image_where_that_pays(shape, filters, of_weight):
    """Else tensors are copied, as the first three: measured on an H200."""
    _, backward = workspaces(shape, (filters, shape[1], 1, 1), dtype=torch.bfloat16)

    assert backward[-1] == pytest.approx(of_weight, abs=1024)


@pytest.mark.parametrize(
    ("shape", "filters", "forward", "of_input", "of_weight"),
    [
        ((64, 320, 14, 14), 1280, 40_140_947, 0, 104_857_600),
        ((64, 1280, 14, 14), 320, 0, 40_140_947, 40_140_816),
        ((16, 512, 14, 14), 2048, 0, 16_056_336, 16_056_467),
        ((64, 2560, 14, 14), 640, 0, 0, 80_281_616),
        ((96, 2560, 14, 14), 640, 0, 120_422_547, 120_422_416),
        ((16, 1280, 14, 14), 320, 0, 0, 26_214_400),
        ((64, 1280, 28, 28), 320, 160_563_347, 0, 104_857_600),
        ((96, 1280, 28, 28), 320, 0, 0, 157_286_400),
        ((64, 1024, 7, 7), 256, 8_028_176, 0, 67_108_864),
        ((64, 384, 7, 7), 1536, 12_042_387, 0, 150_994_944),
        ((64, 768, 7, 7), 192, 6_021_136, 0, 6_021_136),
        ((128, 768, 7, 7), 192, 12_042_256, 12_042_256, 12_042_256),
    ],
)
def test_single_taps_in_half_are_copied_by_batch_and_weight(shape, filters, forward, of_input, of_weight):
    """Measured on an H200; the rule copies the weight, too, for gradients of a narrowed `x`."""
    ahead, backward = workspaces(shape, (filters, shape[1], 1, 1), dtype=torch.bfloat16)
    measured = [num_bytes for num_bytes in (forward, of_input, of_weight) if num_bytes]
    off = 2 * filters * shape[1] if shape[2] == 14 and shape[1] > filters else 1024

    assert [*ahead, *backward] == pytest.approx(measured, abs=off + 1024)


def test_gradients_of_weights_by_no_transform():
    """Where a small image's filters become four times as many, tensors are copied and partial sums left: 12,747,248."""
    _, backward = workspaces((32, 64, 14, 14), (256, 64, 3, 3), dtype=torch.float32, padding=1)

    assert 12_747_248 == pytest.approx(backward[-1], rel=0.05)


@pytest.mark.parametrize(("channels", "copied"), [(64, 0), (128, 0), (256, 335_544_832)])
def test_single_taps_with_a_stride(channels, copied):
    """In single precision positions are skipped in place, but in the gradient of 256 channels."""
    forward, backward = workspaces((16, channels, 128, 128), (channels, channels, 1, 1), dtype=torch.float32, stride=2)

    assert forward == []
    assert copied == pytest.approx(sum(backward[:-1]), abs=1024)


def test_channels_last_need_no_copy():
    """Only the partial sums of the weight's gradient, 1,917,591 bytes, are left."""
    forward, backward = workspaces((16, 64, 56, 56), (64, 64, 3, 3), torch.channels_last, padding=1)

    assert forward == []
    assert [1_917_591] == pytest.approx(backward, rel=0.1)


@pytest.mark.parametrize(
    ("shape", "filters", "copied"),
    [
        ((32, 256, 56, 56), 512, 102_760_448 + 524_288),
        ((4, 256, 40, 40), 512, 6_553_600 + 3_276_800),
        ((8, 128, 80, 80), 256, 26_214_400 + 13_107_200),
        ((4, 64, 80, 80), 256, 0),
    ],
)
def test_steps_to_more_filters(shape, filters, copied):
    """Where a residual network halves its images: what is made of many positions is written in place."""
    forward, _ = workspaces(shape, (filters, shape[1], 1, 1), dtype=torch.float32, stride=2)

    assert forward == ([copied + 16] if copied else [])


@pytest.mark.parametrize(
    ("shape", "filters", "num_tiles"),
    [
        ((64, 128, 16, 16), 512, 104),
        ((4, 192, 64, 64), 512, 112),
        ((64, 256, 16, 16), 512, 120),
        ((64, 96, 16, 16), 512, 0),
        ((32, 256, 16, 16), 512, 0),
    ],
)
def test_sums_of_a_full_wave_are_shared_out(shape, filters, num_tiles):
    """Four taps with a stride, to 128 tiles of a product; not with short sums, nor to half as many."""
    forward, _ = workspaces(shape, (filters, shape[1], 4, 4), dtype=torch.float32, stride=2, padding=1)
    x, weight = math.prod(shape), filters * shape[1] * 16
    y = x // shape[1] * filters // 4

    assert forward == [4 * (x + weight + y) + 16 + num_tiles * 65_536]


@pytest.mark.parametrize(
    ("shape", "filters", "num_tiles"),
    [((64, 256, 16, 16), 512, 160), ((8, 256, 64, 64), 64, 20), ((8, 128, 64, 64), 64, 0), ((8, 256, 16, 16), 64, 0)],
)
def test_four_taps_of_256_channels_are_transformed(shape, filters, num_tiles):
    """For the gradient of the input: 36 numbers for 16, where there are many positions."""
    _, backward = workspaces(shape, (filters, shape[1], 4, 4), dtype=torch.float32, stride=2, padding=1)
    x, weight = math.prod(shape), filters * shape[1] * 16
    y = x // shape[1] * filters // 4

    assert backward[0] - (4 * (x + weight + y) + 16) == num_tiles * 65_536


@pytest.mark.parametrize(
    ("shape", "filters", "copies"),
    [
        ((128, 32, 16, 16), 64, ""),
        ((64, 32, 16, 16), 64, "xwy"),
        ((16, 48, 128, 128), 128, "xw"),
        ((4, 48, 128, 128), 96, "xwy"),
    ],
)
def test_four_taps_to_few_filters(shape, filters, copies):
    """Of many positions nothing is copied, or what is made is not."""
    forward, _ = workspaces(shape, (filters, shape[1], 4, 4), dtype=torch.float32, stride=2, padding=1)
    x = 4 * math.prod(shape)
    sizes = {"x": x, "w": 64 * filters * shape[1], "y": x // shape[1] * filters // 4}

    assert sum(forward) == (sum(sizes[copy] for copy in copies) + 16 if copies else 0)


@pytest.mark.parametrize(
    ("dtype", "copied"),
    [(torch.float32, 15_291_152), (torch.bfloat16, 9_683_984)],
)
def test_channels_are_aligned(dtype, copied):
    """Three channels stay three in single precision and become eight in half."""
    forward, _ = workspaces((16, 3, 112, 112), (64, 3, 7, 7), dtype=dtype, stride=2, padding=3)

    assert forward == [copied]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("window", [1, 3, 5])
def test_single_channels_take_nothing(window, layout):
    """In half, where more channels are padded to eight (benchmarks/kernels/few_channels.py)."""
    shape = (1, 1, window, window)

    assert workspaces((32, 1, 256, 256), shape, layout, padding=window // 2) == ([], [])


def test_pointwise():
    """A product of matrices: nothing, but for a partial sum of the weight's gradient for each image."""
    assert workspaces((32, 64, 56, 56), (256, 64, 1, 1)) == ([], [2_097_152])


def test_pointwise_with_odd_rows():
    """7 x 7 positions cannot be loaded by fours: input and output are copied."""
    forward, _ = workspaces((32, 512, 7, 7), (2048, 512, 1, 1))

    assert forward == [8_028_176]


def test_depthwise():
    """PyTorch's own kernels."""
    assert workspaces((16, 96, 28, 28), (96, 1, 7, 7), padding=3, groups=96) == ([], [])


@pytest.mark.parametrize(
    ("shape", "side", "stride", "of_weight"),
    [
        ((128, 116, 14, 14), 3, 1, 4_718_592),
        ((64, 240, 64, 64), 3, 2, 4_718_592),
        ((16, 960, 7, 7), 5, 1, 12_288_000),
        ((32, 72, 56, 56), 5, 2, 2_457_600),
        ((16, 768, 9, 9), 7, 1, 19_267_584),
        ((4, 672, 14, 14), 5, 2, 0),
    ],
)
def test_depthwise_in_half_with_channels_last(shape, side, stride, of_weight):
    """Eight sums for each image, whose channels are filled up to 32; none for few positions: to the byte on an H200."""
    options = {"padding": side // 2, "stride": stride, "groups": shape[1], "dtype": torch.bfloat16}
    _, backward = workspaces(shape, (shape[1], 1, side, side), torch.channels_last, **options)

    assert sum(backward) == of_weight


@pytest.mark.parametrize(("shape", "of_weight"), [((8, 192, 28, 28), 48_776_192), ((128, 768, 7, 7), 0)])
def test_depthwise_windows_of_seven_in_single_precision(shape, of_weight):
    """Groups of four channels over large images, and none over small ones, as of a ConvNeXt."""
    options = {"padding": 3, "groups": shape[1], "dtype": torch.float32}
    _, backward = workspaces(shape, (shape[1], 1, 7, 7), torch.channels_last, **options)

    assert of_weight == pytest.approx(sum(backward), rel=0.02)


def test_volumes():
    """In three dimensions as in two."""
    forward, _ = workspaces((2, 16, 24, 24, 24), (32, 16, 3, 3, 3), dtype=torch.float32, padding=1)

    assert forward == [5_363_728]


def test_sum_of_the_bias_s_gradient():
    """With channels last the positions are summed in a staging buffer of 6,422,528 bytes."""
    with h100() as gpu:
        layer = torch.nn.Conv2d(64, 64, 3, padding=1).half().cuda().to(memory_format=torch.channels_last)
        out = layer(torch.randn(16, 64, 56, 56, device="cuda").half().to(memory_format=torch.channels_last))
        gradient = torch.ones_like(out)
        with births_on(gpu) as births:
            out.backward(gradient)
    assert 6_422_528 in requested(births)


@pytest.mark.parametrize(
    ("switch", "value", "forward"), [("benchmark", True, [12_918_800] * 2), ("enabled", False, [])]
)
def test_switches_of_cudnn(monkeypatch, switch, value, forward):
    """What wins a benchmark is taken to be what runs without; without cuDNN, no workspace is given."""
    monkeypatch.setattr(torch.backends.cudnn, switch, value)
    assert workspaces((16, 64, 56, 56), (64, 64, 3, 3), padding=1)[0] == forward


@pytest.mark.parametrize(("dtype", "forward"), [(torch.float16, [12_918_800]), (torch.float32, [])])
def test_cards_without_tensor_cores_for_single_precision(dtype, forward):
    """A V100 has them for half."""
    shapes, card = ((16, 64, 56, 56), (64, 64, 3, 3)), {"card": lambda: card_of("v100-16gb")}
    assert workspaces(*shapes, **card, dtype=dtype, padding=1)[0] == forward


def test_the_rest_is_listed(virtual_gpu):
    """What cuDNN takes beyond the copies stays unknown."""
    F.conv2d(torch.randn(2, 8, 8, 8, device="cuda"), torch.randn(8, 8, 3, 3, device="cuda"))

    assert "convolution-workspace" in slugs(virtual_gpu)


def backward_births(input, weight, gradient, **options):
    """Every block of the backward of a convolution of two leaves, in the card's order."""
    with h100() as gpu:
        x, w = input().cuda().requires_grad_(), weight().cuda().requires_grad_()
        out = F.conv2d(x, w, **options)
        above = gradient().cuda()
        with births_on(gpu) as births:
            torch.autograd.grad(out, (x, w), above)
    return requested(births)


def test_each_gradient_is_followed_by_its_workspace():
    """64 channels of 56 x 56, a batch of 32: the gradient of the input, 51,527,696 bytes, that of the weight, and
    53,592,743 bytes."""
    of_input, for_input, of_weight, for_weight = backward_births(
        lambda: torch.randn(32, 64, 56, 56), lambda: torch.randn(64, 64, 3, 3), lambda: torch.randn(32, 64, 56, 56),
        padding=1,
    )  # fmt: skip

    assert (of_input, for_input, of_weight) == (25_690_112, 51_527_696, 147_456)
    assert for_weight == pytest.approx(53_592_743, abs=1024)


def test_a_gradient_in_another_order_is_copied():
    """The gradient of a patch embedding is copied first: its tokens came first."""
    births = backward_births(
        lambda: torch.randn(4, 64, 8, 8), lambda: torch.randn(32, 64, 1, 1),
        lambda: torch.randn(4, 8, 8, 32).permute(0, 3, 1, 2),
    )  # fmt: skip

    assert births[:2] == [4 * 32 * 64 * 4, 4 * 64 * 64 * 4]


def test_weights_follow_the_input_to_channels_last(virtual_gpu):
    """`Conv2d` that was not moved to channels last copies its weight at every call."""
    x = torch.randn(2, 8, 16, 16, device="cuda").to(memory_format=torch.channels_last)
    w = torch.randn(8, 8, 3, 3, device="cuda")

    with births_on(virtual_gpu) as births:
        F.conv2d(x, w)

    assert requested(births) == [2 * 8 * 14 * 14 * 4, w.nbytes]


@pytest.mark.parametrize(
    ("input", "weight", "dtype", "measured"),
    [
        ((32, 1024, 14, 14), (256, 1024, 1, 1), torch.float32, 33_554_432),
        ((32, 1024, 14, 14), (512, 1024, 1, 1), torch.float32, 46_924_335),
        ((32, 1024, 14, 14), (256, 1024, 1, 1), torch.float16, 16_056_336),
        ((8, 64, 64, 64), (21, 64, 1, 1), torch.float16, 43_008),
        ((32, 3, 224, 224), (768, 3, 16, 16), torch.float16, 57_344_144),
        ((32, 256, 14, 14), (256, 256, 3, 3), torch.float32, 22_282_847),
    ],
)
def test_gradients_of_weights(input, weight, dtype, measured):
    """A sum for each image up to 64 MiB, in half only of rows that load by eights; copies and partial sums else."""
    (_, backward) = workspaces(input, weight, dtype=dtype, stride=weight[-1] if weight[-1] > 3 else 1,
                               padding=1 if weight[-1] == 3 else 0)  # fmt: skip

    assert backward[-1] == pytest.approx(measured, abs=1024)


def test_short_sums_are_written_in_place():
    """64 channels of 56 x 56, a batch of 32 in single precision: the output of the forward needs no copy."""
    assert workspaces((32, 64, 56, 56), (64, 64, 3, 3), dtype=torch.float32, padding=1)[0] == [25_837_584]


def test_transposed_convolutions_are_gradients():
    """A patch of 16 x 16 in half needs its copies where it embeds, and none where it paints."""
    assert workspaces((32, 3, 224, 224), (768, 3, 16, 16), stride=16)[0] == [38_469_648]
    with h100() as gpu:
        x = torch.randn(32, 768, 14, 14, device="cuda", dtype=torch.float16)
        w = torch.randn(768, 3, 16, 16, device="cuda", dtype=torch.float16)
        with births_on(gpu) as births:
            out = F.conv_transpose2d(x, w, stride=16)
    assert requested(births) == [out.nbytes]


@pytest.mark.parametrize(("channels", "rest"), [(512, 84 * 65536), (1408, 0)])
def test_the_last_wave_of_tiles_is_split(channels, rest):
    """512 channels make 144 tiles, of which 12 are left to split by seven; 1408 make three full waves."""
    _, (*_, for_weight) = workspaces((32, 512, 7, 7), (channels, 512, 3, 3), dtype=torch.float32, padding=1)

    copies = 4 * (32 * 49 * (512 + channels) + channels * 512 * 9)
    assert for_weight - copies == pytest.approx(rest, abs=1024)


def test_large_products_in_half_load_by_eights():
    """1024 to 512 channels of 14 x 14, a batch of 128: copies, and of the weight on the way back."""
    forward, backward = workspaces((128, 1024, 14, 14), (512, 1024, 1, 1))

    assert forward == pytest.approx([77_070_483], abs=512)
    assert backward == pytest.approx([78_119_123, 83_362_351], rel=0.01)


def test_small_windows_of_a_stem_need_nothing():
    """3 x 3 by 2 in single precision, as in mobile networks."""
    assert workspaces((32, 3, 224, 224), (32, 3, 3, 3), dtype=torch.float32, stride=2, padding=1) == ([], [])


def test_an_empty_batch_takes_nothing():
    """Nor is anything computed of it."""
    assert workspaces((0, 64, 8, 8), (64, 64, 3, 3)) == ([], [])


LONG_SUM = ((6, 2048, 48, 48), (256, 2048, 3, 3)), {"padding": 12, "dilation": 12}
SHORT_SUM = ((8, 32, 64, 64), (32, 32, 3, 3)), {"dilation": 2}


@pytest.mark.parametrize(
    ("shapes", "options", "layout", "expected"),
    [
        (*LONG_SUM, torch.contiguous_format, ([132_120_592], [146_276_368, 486_015_120])),
        (*LONG_SUM, torch.channels_last, ([146_276_368], [33_030_160, 467_140_752])),
        (*SHORT_SUM, torch.channels_last, ([], [8_323_216])),
    ],
)
def test_dilated_convolutions_in_single_precision(shapes, options, layout, expected):
    """As of segmentation networks: copies of another layout, and a sum in parts."""
    forward, backward = workspaces(*shapes, layout, torch.float32, **options)
    assert (forward, [size for size in backward if size in expected[1]]) == expected


def test_depthwise_convolutions_of_float16_are_of_cudnn():
    """Only where the window moves by one, and not in bfloat16."""
    shapes, options = ((32, 32, 112, 112), (32, 1, 3, 3)), {"padding": 1, "groups": 32}
    assert [51_562_178] == pytest.approx(workspaces(*shapes, **options)[1], rel=0.01)
    assert workspaces(*shapes, **options, stride=2)[1] == workspaces(*shapes, **options, dtype=torch.bfloat16)[1] == []


@pytest.mark.parametrize(
    ("dtype", "forward", "backward"),
    [(torch.float32, 12_863_504, [13_453_703]), (torch.float16, 6_431_760, [6_431_760])],
)
def test_groups_of_four_channels(dtype, forward, backward):
    """As of ResNeXt's first stage: only one of the gradients takes a workspace."""
    taken = workspaces((16, 128, 28, 28), (128, 4, 3, 3), dtype=dtype, padding=1, groups=32)
    assert taken[0] == [forward]
    assert backward == pytest.approx(taken[1], rel=0.03)


def trials(shape, weight, layout, dtype, **options):
    """The largest block of a convolution's first forward and backward with `cudnn.benchmark`, and of the second."""
    with card_of("h200") as gpu:
        x = torch.randn(shape, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        w = torch.randn(weight, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()
        largest = []
        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            for _ in range(2):
                with births_on(gpu) as forward:
                    out = F.conv2d(x, w, **options)
                with births_on(gpu) as backward:
                    out.backward(torch.ones_like(out))
                largest.append((max(requested(forward)), max(requested(backward))))
    return largest


@pytest.mark.parametrize(
    ("shape", "weight", "layout", "padding", "forward", "backward"),
    [
        ((32, 256, 56, 56), (256, 256, 3, 3), torch.channels_last, 1, 2576.5, 2408.3),
        ((64, 256, 14, 14), (256, 256, 3, 3), torch.contiguous_format, 1, 182.2, 408.0),
        ((32, 1024, 64, 64), (256, 1024, 1, 1), torch.contiguous_format, 0, 9506, 8576),
    ],
)
def test_kernels_are_tried_at_the_first_call(shape, weight, layout, padding, forward, backward):
    """With `cudnn.benchmark` the workspace of the first call is that of kernels in Fourier space (MiB, an H200)."""
    first, second = trials(shape, weight, layout, torch.float32, padding=padding)

    assert [forward, backward] == pytest.approx([size / 2**20 for size in first], rel=0.01)
    assert 4 * max(second) < max(first)


@pytest.mark.parametrize(
    ("shape", "weight", "layout", "options", "forward", "of_input"),
    [
        # Fourier's tiles of four phases of a stride, and whole pictures: eight of 32 groups.
        ((96, 1024, 14, 14), (1024, 32, 3, 3), torch.channels_last, {"stride": 2}, 24_379_520, 690_421_888),
        ((128, 1024, 7, 7), (1024, 32, 3, 3), torch.channels_last, {}, 101_236_864, 327_434_368),
        ((16, 256, 14, 14), (256, 16, 3, 3), torch.contiguous_format, {}, 11_116_672, 28_344_448),
        # Two channels are widened to four.
        ((64, 1024, 28, 28), (1024, 2, 3, 3), torch.channels_last, {"stride": 2}, 257_048_592, 257_052_176),
    ],
)  # fmt: skip
def test_groups_are_tried_in_half(shape, weight, layout, options, forward, of_input):
    """In float16; the gradient of the input takes more than that of the weight (an H200, 2026-11-30)."""
    groups = shape[1] // weight[1]
    (ahead, backward), _ = trials(shape, weight, layout, torch.float16, padding=1, groups=groups, **options)

    assert [forward, of_input] == pytest.approx([ahead, backward], rel=0.02, abs=512)


@pytest.mark.parametrize(("samples", "measured"), [(2, 29_196_288), (4, 29_196_288)])
def test_winograd_s_tiles_of_groups_are_of_sixteen_samples(samples, measured):
    """In bfloat16, which has no spectra."""
    first, _ = trials(
        (samples, 512, 28, 28), (512, 16, 3, 3), torch.contiguous_format, torch.bfloat16, padding=1, groups=32
    )

    assert first == (measured, measured)


def test_groups_of_two_channels_are_widened_to_four():
    """For the gradients in half alone, and for that of the weight where channels come last (an H200, 2026-11-30)."""
    shapes, options = (
        ((16, 1024, 28, 28), (1024, 2, 3, 3)),
        {"padding": 1, "groups": 512, "card": lambda: card_of("h200")},
    )

    last = workspaces(*shapes, torch.channels_last, stride=2, **options)
    assert last == ([], [64_372_752, 64_372_752])
    assert workspaces((16, 1024, 16, 16), shapes[1], **options) == ([], [33_701_904])
    assert workspaces(*shapes, torch.channels_last, torch.float32, stride=2, **options) == ([], [])


def test_few_filters_in_half_are_padded_to_eight():
    """As a network of diffusion ends, of 128 channels to three: eight of them are copied (an H200, 2026-11-28)."""
    forward, _ = workspaces((16, 128, 64, 64), (3, 128, 3, 3), dtype=torch.float16, padding=1)
    assert [17_844_240] == forward


def test_the_gradient_of_many_filters_for_each_picture_copies_eight_of_them():
    """As vmap of grad has a stem that cuts pictures into patches (private_gradients, an H200, 2026-11-29)."""
    options = {"stride": 16, "groups": 48, "card": lambda: card_of("h200")}
    _, backward = workspaces((1, 144, 224, 224), (9216, 3, 16, 16), dtype=torch.float32, **options)
    assert 13_919_872 == pytest.approx(backward[-1], rel=0.001)


@pytest.mark.parametrize(
    ("shape", "measured"), [((32, 1024, 14, 14), 64_520_208), ((16, 64, 28, 28), 0), ((16, 960, 28, 28), 0)]
)
def test_depthwise_steps_go_to_cudnn_where_it_is_faster(shape, measured):
    """In float16 by `check_cudnn_depthwise_workload_with_filter`: elsewhere there is nothing to try (an H200)."""
    size = 7 if shape[1] == 960 else 3
    options = {"padding": size // 2, "stride": 2, "groups": shape[1]}
    first, second = trials(shape, (shape[1], 1, size, size), torch.contiguous_format, torch.float16, **options)

    assert first[0] == (measured or second[0])


def test_what_kernels_were_tried_in_is_given_back():
    """`run_single_conv` empties the cache after it: 690 MB of the gradient of the input are not reserved behind it."""
    with card_of("h200"), torch.backends.cudnn.flags(enabled=True, benchmark=True):
        x = torch.randn(96, 1024, 14, 14, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
        w = torch.randn(1024, 32, 3, 3, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
        out = F.conv2d(x.requires_grad_(), w, padding=1, stride=2, groups=32)
        out.backward(torch.ones_like(out))

        assert torch.cuda.max_memory_reserved() > 690_421_888 > 4 * torch.cuda.memory_reserved()


def test_half_has_no_spectra():
    """Copies, and 16 MiB of sums."""
    first, _ = trials((32, 256, 56, 56), (256, 256, 3, 3), torch.channels_last, torch.float16, padding=1)

    assert [98, 98] == pytest.approx([size / 2**20 for size in first], rel=0.02)


@pytest.mark.parametrize(
    ("shape", "weight", "options", "mebibytes"),
    [
        ((1, 4096, 32, 32), (2048, 256, 3, 3), {"padding": 1, "groups": 16, "dtype": torch.float16}, 10.5),
        ((1, 512, 64, 64), (512, 64, 3, 3), {"padding": 1, "groups": 8, "dtype": torch.float16}, 8.56),
        ((4, 512, 64, 64), (512, 512, 3, 3), {"padding": 2, "dilation": 2, "dtype": torch.float32}, 73.0),
        ((4, 960, 32, 32), (256, 960, 3, 3), {"padding": 12, "dilation": 12, "dtype": torch.float32}, 27.44),
        ((128, 4, 84, 84), (32, 4, 8, 8), {"stride": 4, "dtype": torch.float32}, 20.06),
        ((64, 64, 56, 56), (128, 64, 3, 3), {"padding": 1, "dtype": torch.float32}, 49.28),
    ],
)
def test_what_networks_take_in_the_forward(shape, weight, options, mebibytes):
    """Groups of many channels go eight at a time; sums from 64 channels to 128 are written in place."""
    forward, _ = workspaces(shape, weight, **options)
    assert [mebibytes] == pytest.approx([size / 2**20 for size in forward], rel=0.01)


def test_a_sum_for_each_image_in_large_batches():
    """64 images of 16,384 positions; a half of them are copied instead."""
    of_weight = {
        batch: workspaces((batch, 64, 128, 128), (64, 64, 1, 1), dtype=torch.float32)[1][-1] for batch in (32, 64)
    }
    assert of_weight[64] == 64 * 4 * 64 * 64
    assert of_weight[32] == pytest.approx(257.97 * 2**20, rel=0.01)


@pytest.mark.parametrize("length", [13, 75])
def test_long_odd_rows_in_half_are_not_copied(length):
    """Products over images of an odd number of pixels, unless they are small ones as of 7 x 7; sums for each image."""
    forward, backward = workspaces((32, 96, length, length), (48, 96, 1, 1))

    assert [] == forward
    assert [32 * 4 * 96 * 48] == backward


# Pictures, windows and padding, and what the card took.
WHOLE_WINDOWS = [
    ((128, 1, 64, 64), (128, 1, 64, 64), 1, 2_183_135_232),
    ((64, 1, 128, 128), (64, 1, 128, 128), 1, 2_168_455_168),
    ((64, 4, 16, 16), (32, 4, 16, 16), 0, 4_849_664),
    ((64, 1, 128, 128), (1, 1, 128, 128), 0, 8_718_336),
    ((3, 1, 128, 128), (256, 1, 127, 127), 1, 0),
]


@pytest.mark.parametrize(("shape", "weight", "padding", "measured"), WHOLE_WINDOWS)
def test_windows_as_large_as_the_picture(shape, weight, padding, measured):
    """As a second derivative has them: spectra of all pictures that are made, twice, or nothing for few pictures."""
    with h100() as gpu:
        x, w = torch.zeros(shape, device="cuda"), torch.zeros(weight, device="cuda")
        with births_on(gpu) as births:
            out = F.conv2d(x, w, padding=padding)

    assert ([measured] if measured else []) == [size for size in requested(births) if size != out.nbytes]


DILATED = [
    # Gaps of twelve: written in place, and a sum in parts.
    ((8, 2048, 64, 64), 256, 12, 274.00, 306.00, 378.00),
    ((1, 960, 32, 32), 256, 12, 13.19, 13.19, 46.94),
    ((8, 512, 64, 64), 256, 12, 68.50, 100.50, 100.50),
    # Of two: the last tiles are shared out.
    ((8, 2048, 64, 64), 256, 2, 312.00, 306.00, 313.50),
    ((6, 2048, 24, 24), 256, 2, 62.38, 48.38, 55.88),
    ((16, 512, 28, 28), 512, 2, 74.00, 74.00, 58.00),
    ((1, 512, 64, 64), 512, 2, 25.00, 25.00, 25.00),
]


@pytest.mark.parametrize(("shape", "filters", "gap", "forward", "of_input", "of_weight"), DILATED)
def test_dilated_windows_of_many_channels(shape, filters, gap, forward, of_input, of_weight):
    """As of segmentation networks, in single precision; in MiB, measured on an H200 (benchmarks/kernels)."""
    weight = (filters, shape[1], 3, 3)
    ahead, backward = workspaces(shape, weight, dtype=torch.float32, padding=gap, dilation=gap)

    assert [size / MIB for size in ahead] == pytest.approx([forward], abs=0.1)
    assert [size / MIB for size in backward] == pytest.approx([of_input, of_weight], abs=0.1)


RESIDUAL = [
    # Single taps: a sum for each image, or copies of odd rows.
    ((96, 256, 7, 7), 1024, 1, torch.bfloat16, 11.5, 96.0),
    ((64, 256, 14, 14), 1024, 1, torch.float32, 0, 64.0),
    ((64, 1024, 7, 7), 256, 1, torch.float32, 15.31, None),
    ((96, 512, 7, 7), 256, 1, torch.bfloat16, 6.89, 6.89),
    ((64, 512, 7, 7), 256, 1, torch.bfloat16, 0, 4.59),
    # Three taps by three: half tiles, the last wave, and both transforms.
    ((64, 256, 14, 14), 512, 3, torch.float32, None, 45.38),
    ((64, 128, 14, 14), 256, 3, torch.float32, None, 22.88),
    ((128, 512, 14, 14), 512, 3, torch.bfloat16, 53.5, 61.0),
    ((32, 256, 28, 28), 512, 3, torch.bfloat16, 39.0, 42.75),
    ((64, 64, 14, 14), 64, 3, torch.float32, 6.27, 18.57),
    ((96, 64, 14, 14), 64, 3, torch.float32, 9.33, 31.6),
]


@pytest.mark.parametrize(("shape", "filters", "side", "dtype", "of_input", "of_weight"), RESIDUAL)
def test_gradients_of_residual_layers(shape, filters, side, dtype, of_input, of_weight):
    """By their batches, in MiB, measured on an H200 (benchmarks/kernels); None for what is left to other tests."""
    _, backward = workspaces(shape, (filters, shape[1], side, side), dtype=dtype, padding=side // 2)
    found = [0] * (2 - len(backward)) + [size / MIB for size in backward]

    expected = [each if each is not None else other for each, other in zip((of_input, of_weight), found, strict=True)]
    assert found == pytest.approx(expected, abs=0.1)


MIB = 1 << 20
SINGLE_STEPS = [
    # In single precision: in place, copies of x and y, and of x and the weight.
    ((256, 128, 28, 28), 256, torch.float32, 0, 0, None),
    ((16, 256, 56, 56), 64, torch.float32, 0, 52.06 * MIB, 0),
    ((16, 256, 56, 56), 512, torch.float32, 49.5 * MIB, 73.5 * MIB, 77 * MIB),
    ((16, 96, 56, 56), 128, torch.float32, 24.5 * MIB, 0, 25.19 * MIB),
    ((4, 160, 80, 80), 128, torch.float32, 0, 0, 0),
    ((16, 192, 56, 56), 256, torch.float32, 49 * MIB, 49 * MIB, 51.75 * MIB),
    # In half.
    ((32, 64, 56, 56), 128, torch.bfloat16, 0, 18.38 * MIB, 19.09 * MIB),
    ((32, 64, 56, 56), 256, torch.bfloat16, 24.5 * MIB, 24.5 * MIB, 25 * MIB),
]


@pytest.mark.parametrize(("shape", "filters", "dtype", "forward", "of_input", "of_weight"), SINGLE_STEPS)
def test_single_steps(shape, filters, dtype, forward, of_input, of_weight):
    """Single taps with a stride, as residual networks take them, measured on an H200 (benchmarks/kernels)."""
    ahead, backward = workspaces(shape, (filters, shape[1], 1, 1), dtype=dtype, stride=2)
    expected = [size for size in (of_input, of_weight) if size]

    assert pytest.approx([forward] if forward else [], rel=0.01) == ahead
    assert pytest.approx(expected, rel=0.04) == (backward if of_weight is not None else backward[:-1])


@pytest.mark.parametrize(
    ("shape", "filters", "dtype", "forward", "of_input", "of_weight"),
    [
        ((32, 512, 7, 7), 4096, torch.float32, 414_253_072, 414_253_072, 802_816),
        ((64, 512, 7, 7), 1024, torch.float32, 109_183_000, 109_183_000, 109_451_536),
        ((16, 512, 7, 7), 64, torch.float32, 100_794_368, 0, 0),
        ((8, 64, 6, 6), 1024, torch.float32, 9_510_928, 9_510_928, 9_510_928),
        ((32, 512, 7, 7), 4096, torch.bfloat16, 0, 207_388_688, 207_388_688),
    ],
)
def test_windows_that_end_a_network(shape, filters, dtype, forward, of_input, of_weight):
    """As large as a small picture: nothing is copied of `y`, and wide layers have counters for their weights alone.

    Measured on an H200 (benchmarks/kernels), within 256 KiB.
    """
    weight = (filters, *shape[1:])
    ahead, backward = workspaces(shape, weight, dtype=dtype)
    expected = [size for size in (of_input, of_weight) if size]

    assert pytest.approx([forward] if forward else [], abs=1 << 18) == ahead
    assert pytest.approx(expected, abs=1 << 18) == backward


@pytest.mark.parametrize(
    ("shape", "filters", "for_weight"),
    [
        ((20, 48, 192, 192), 16, 20 * 48 * 16 * 4),
        ((20, 64, 64, 64), 64, None),
        ((20, 64, 64, 64), 80, 20 * 64 * 80 * 4),
        ((24, 32, 112, 112), 192, None),
        ((4, 256, 200, 272), 3, None),
        ((4, 256, 100, 136), 12, None),
    ],
)
def test_products_over_large_images(shape, filters, for_weight):
    """In single precision the gradient of the weight is a sum for each image, but copies for few channels.

    And for the heads of a detector, of three and of twelve filters.
    """
    _, (of_weight,) = workspaces(shape, (filters, shape[1], 1, 1), dtype=torch.float32)
    copies = 4 * shape[0] * shape[2] * shape[3] * (shape[1] + filters)

    assert of_weight == (pytest.approx(copies, rel=0.15) if for_weight is None else for_weight)


def test_products_over_a_single_large_image():
    """Parts of it, without copies."""
    _, (of_weight,) = workspaces((1, 64, 512, 512), (64, 64, 1, 1), dtype=torch.float32)

    assert of_weight == pytest.approx(4_342_784, rel=0.01)


@pytest.mark.parametrize("is_line", [False, True])
def test_gradients_of_own_depthwise_kernels(is_line):
    """That of the weight is made before that of the input, unlike those of cuDNN."""
    sides = (56,) if is_line else (56, 56)
    with h100() as gpu:
        layer = (nn.Conv1d if is_line else nn.Conv2d)(64, 64, 3, padding=1, groups=64, bias=False).cuda()
        x = torch.zeros(8, 64, *sides, device="cuda", requires_grad=True)
        out = layer(x)
        with births_on(gpu) as births:
            out.backward(torch.ones_like(out))

    assert [x.nbytes, layer.weight.nbytes, x.nbytes] == requested(births)


def test_weights_are_copied_into_the_call_and_inputs_before_it(virtual_gpu):
    """Neither lies in rows: the input is copied, the result made, and the weight copied (Glow on an H200)."""
    x = torch.zeros(64, 8, 32, 32, device="cuda").transpose(0, 1)
    weight = torch.zeros(64, 16, 3, 3, device="cuda").transpose(0, 1)
    with births_on(virtual_gpu) as births:
        out = F.conv2d(x, weight)

    assert [x.nbytes, out.nbytes, weight.nbytes] == requested(births)[:3]


def test_second_derivatives_copy_the_weight_first(virtual_gpu):
    """What stands for the weight is the gradient, transposed: its caller copies it, then `_convolution` the input."""
    x = torch.zeros(8, 64, 32, 32, device="cuda", requires_grad=True)
    weight = torch.zeros(16, 64, 3, 3, device="cuda", requires_grad=True)
    (gradient,) = torch.autograd.grad(F.conv2d(x, weight).pow(2).sum(), x, create_graph=True)
    with births_on(virtual_gpu) as births:
        gradient.pow(2).sum().backward()

    of_y = 4 * 8 * 16 * 30 * 30
    assert [of_y, x.nbytes, weight.nbytes] in [requested(births)[i : i + 3] for i in range(len(births))]
