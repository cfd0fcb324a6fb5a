"""cuDNN's convolutions through Fourier space: their workspaces hold the spectra of tiles, as real numbers have them.

Pictures go whole, in a power of two that holds them with their padding, up to 256; the gradient of the input goes by
tiles of 32, two of them at a time, and with a stride as a picture for each phase of it. Of groups eight go at a time.
All are there to the byte in the plans that cuDNN 9.19 tells on an H200 (engines 3, 18 and 50; benchmarks/kernels): in
1,510 of 1,519 for `y`, 1,442 of 1,451 for the gradient of the weight, 2,322 of 2,325 for that of the input.
"""

from dataclasses import dataclass
from math import prod

from peaksight.virtual_gpu.kernels.convolution_problem import DESCRIPTOR_BYTES, FLOAT_BYTES, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

SMALLEST_TILE = 16
LARGEST_TILE = 256
TILE = 32
MOST_TILES = 2
ALIGNMENT = 8
COMPLEX_BYTES = 8


def tile_of(convolution: Convolution) -> int:
    """The power of two that holds a picture with its padding."""
    padded = (out + size - 1 for out, size in zip(convolution.y.shape[2:], convolution.kernel, strict=True))
    return max(SMALLEST_TILE, 1 << (max(padded) - 1).bit_length())


def fits(convolution: Convolution) -> bool:
    """Whether there is a tile for whole pictures."""
    return tile_of(convolution) <= LARGEST_TILE


def forward(convolution: Convolution) -> int:
    """Bytes for `y`: spectra of the weight and of `x`, or those of `y` if they are more, twice."""
    part = convolution.eight_groups()
    samples, channels, filters, pairs = _counts(part)
    num_spectra = max(pairs + samples * channels, samples * filters)
    weight = FLOAT_BYTES * part.weight.numel()
    return 2 * num_spectra * _spectrum_bytes(tile_of(part)) + weight + _copies(part)


def gradient_of_weight(convolution: Convolution) -> int:
    """Bytes for the gradient of the weight: spectra of `x` and `y`, or its own, twice; and a copy of `y`."""
    part = convolution.eight_groups()
    samples, channels, filters, pairs = _counts(part)
    num_spectra = max(samples * (channels + filters), pairs)
    return 2 * num_spectra * _spectrum_bytes(tile_of(part)) + FLOAT_BYTES * part.y.numel() + _copies(part)


def gradient_of_input(convolution: Convolution) -> int:
    """Bytes for the gradient of `x`: spectra of the weight, and of two tiles of both pictures.

    With a stride the channels of all phases are padded to eight, and so are filters.
    """
    part = convolution.eight_groups()
    phases = _phases_of(part)
    num_phases = prod(phase.step for phase in phases)
    num_tiles = min(MOST_TILES, prod(div_up(phase.length, TILE - phase.taps + 1) for phase in phases))
    samples, channels, filters, pairs = _counts(part)
    if num_phases > 1:
        channels, filters, pairs = _padded_counts(part, num_phases)
    of_pictures = samples * (num_phases * channels + filters)
    copied = _copies(part) if num_phases == 1 else _padded_copies(part, phases)
    return _spectrum_bytes(TILE) * (pairs * num_phases + num_tiles * of_pictures) + copied


@dataclass(frozen=True, slots=True)
class _Phase:
    """What one phase of a stride sees along a side: positions of `x` and taps."""

    step: int
    length: int
    taps: int
    is_uneven: bool


def _phases_of(convolution: Convolution) -> list[_Phase]:
    """Of each side; a stride along one side alone is none."""
    is_step = min(convolution.stride) > 1
    names = (convolution.x.shape[2:], convolution.y.shape[2:], convolution.kernel, convolution.stride)
    return [_phase(x, y, size, step if is_step else 1) for x, y, size, step in zip(*names, strict=True)]


def _phase(x: int, y: int, size: int, step: int) -> _Phase:
    """Taps begin where the padding does; `y` is padded where its two ends would differ."""
    padding = div_up(max(0, (y - 1) * step + size - x), 2)
    shift = padding % step
    taps, length = div_up(size + shift, step), div_up(x, step)
    before = taps - 1 - (padding + shift) // step
    return _Phase(step, length, taps, is_uneven=length != y + 2 * before - taps + 1)


def _padded_counts(part: Convolution, num_phases: int) -> tuple[int, int, int]:
    """Channels, filters and pairs."""
    alignment = max(1, ALIGNMENT // num_phases)
    channels = div_up(part.channels, alignment) * alignment
    filters = div_up(part.filters // part.groups, ALIGNMENT) * ALIGNMENT * part.groups
    return part.groups * channels, filters, channels * filters


def _padded_copies(part: Convolution, phases: list[_Phase]) -> int:
    """Of `x` in whole phases, of `y`, and of the weight with whole taps."""
    channels, filters, pairs = _padded_counts(part, prod(phase.step for phase in phases))
    x = channels * prod(phase.length * phase.step for phase in phases)
    y = filters * prod(side + phase.is_uneven for side, phase in zip(part.y.shape[2:], phases, strict=True))
    weight = pairs * prod(phase.taps * phase.step for phase in phases)
    return (part.x.shape[0] * (x + y) + weight) * part.x.itemsize + DESCRIPTOR_BYTES * part.groups


def _copies(part: Convolution) -> int:
    """Pictures of groups that lie apart, and all that has channels last, but for the weight of a single tap."""
    if not part.is_channels_last:
        return (
            part.x.nbytes + part.y.nbytes + DESCRIPTOR_BYTES * part.groups if part.groups > 1 < part.x.shape[0] else 0
        )
    weight = part.weight.nbytes if prod(part.kernel) > 1 else 0
    return part.x.nbytes + part.y.nbytes + weight + DESCRIPTOR_BYTES * part.groups


def _counts(convolution: Convolution) -> tuple[int, int, int, int]:
    """Samples, channels, filters, and pairs of a channel and a filter."""
    samples, channels = convolution.x.shape[:2]
    return samples, channels, convolution.filters, prod(convolution.weight.shape[:2])


def _spectrum_bytes(tile: int) -> int:
    """Of real numbers: half of the frequencies and one."""
    return tile * (tile // 2 + 1) * COMPLEX_BYTES
