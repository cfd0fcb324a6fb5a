"""Which tiles cuDNN takes for windows of three taps by three in single precision, where it may share the last ones.

Read off the first plans of cuDNN 9.19, asked with an H200's properties (cudnn_plans.py of benchmarks/kernels) for
25,966 problems drawn by chance, as networks have them: the sums of 93 % come within a MiB, where 74 % have none.
Thresholds lie between the sizes that were drawn.

Limitations:
    To few positions, from 128 to 219 channels and to 256 filters choices differ from image to image: there the tiles
    are those of most.
"""

from typing import NamedTuple

from peaksight.virtual_gpu.kernels.convolution_problem import TILE, Convolution
from peaksight.virtual_gpu.kernels.reductions import div_up

FEWEST_CHANNELS = 128
FEWEST_POSITIONS = 1_560
# Sums are long from that many channels on.
MANY_CHANNELS = 220
LARGE_BATCH = 16


class Tiles(NamedTuple):
    """A kernel's tile in positions and filters, of which a cluster takes so many, and multiprocessors of a wave."""

    rows: int
    columns: int
    rows_of_cluster: int
    columns_of_cluster: int
    wave: int


SQUARE = Tiles(128, 128, 8, 1, 120)
PAIRED = Tiles(128, 128, 1, 2, 132)
WIDE = Tiles(64, 256, 4, 1, 120)
HIGH = Tiles(256, 128, 1, 2, 132)


def chosen(convolution: Convolution) -> Tiles | None:
    """Tiles whose last ones are shared out, None where they are not."""
    if convolution.num_positions < FEWEST_POSITIONS or convolution.channels < FEWEST_CHANNELS:
        return None
    is_long = convolution.channels >= MANY_CHANNELS
    return _of_long_sums(convolution) if is_long else _of_shorter_sums(convolution)


def _of_long_sums(convolution: Convolution) -> Tiles | None:
    filters = convolution.filters
    if filters < 80 or 257 < filters < 464:
        return None
    if filters < 256:
        return SQUARE if convolution.channels >= 320 or convolution.num_positions >= 3_000 else None
    if filters <= 257:
        return _to_256(convolution)
    if filters <= 516:
        return _to_512(convolution)
    return _to_640(convolution) if filters < 848 else _to_1024(convolution)


def _to_256(convolution: Convolution) -> Tiles | None:
    if _has_stride(convolution):
        return _to_256_by_steps(convolution)
    num_waves = _num_waves(convolution)
    if num_waves < 1.06:
        return None
    if num_waves >= 21.2:
        return HIGH
    side = convolution.x.shape[-1]
    return _over_small_images(convolution) if side <= 16 else WIDE if side < 120 else PAIRED


def _to_256_by_steps(convolution: Convolution) -> Tiles | None:
    num_positions, (batch, channels, _, side) = convolution.num_positions, convolution.x.shape
    if num_positions >= 40_800:
        return HIGH if side >= 48 else PAIRED
    return SQUARE if num_positions >= 3_100 and batch < 128 and channels < 768 else None


def _over_small_images(convolution: Convolution) -> Tiles | None:
    num_positions = convolution.num_positions
    if 16_000 <= num_positions < 22_000:
        return None
    return WIDE if 32_000 <= num_positions < 40_000 else PAIRED


def _to_512(convolution: Convolution) -> Tiles | None:
    num_positions, is_wide = convolution.num_positions, convolution.channels >= 512
    if _has_stride(convolution):
        return _to_512_by_steps(convolution)
    if num_positions < 6_300:
        return WIDE if is_wide and num_positions >= 4_000 else None
    return HIGH if is_wide or num_positions >= 19_700 else PAIRED


def _to_512_by_steps(convolution: Convolution) -> Tiles | None:
    batch, _, _, side = convolution.x.shape
    if side >= 96 and batch >= 8:
        return None
    if convolution.num_positions < 6_200:
        return WIDE
    return PAIRED if side >= 96 else HIGH if side < 48 else None


def _to_640(convolution: Convolution) -> Tiles | None:
    if convolution.x.shape[0] < LARGE_BATCH:
        return None
    return SQUARE if convolution.num_positions >= 13_800 or _has_stride(convolution) else HIGH


def _to_1024(convolution: Convolution) -> Tiles | None:
    if not _has_stride(convolution):
        return HIGH if convolution.num_positions >= 2_880 else WIDE
    if convolution.filters <= 1152:
        return HIGH
    return WIDE if convolution.num_positions >= 5_300 else None


def _of_shorter_sums(convolution: Convolution) -> Tiles | None:
    filters, channels = convolution.filters, convolution.channels
    if filters < 96:
        return None
    if channels >= 192:
        return WIDE if filters >= 192 and _is_of_many_small(convolution) else None
    if filters < 144:
        return SQUARE if _is_squared(convolution) else None
    if filters < 256:
        return _to_192(convolution)
    if channels < 144:
        return _from_128(convolution)
    return SQUARE if convolution.num_positions >= 130_000 else _from_160(convolution)


def _is_squared(convolution: Convolution) -> bool:
    """Whether up to 192 channels to 96 filters or more go by square tiles."""
    num_positions, (batch, channels, _, side) = convolution.num_positions, convolution.x.shape
    if _has_stride(convolution):
        return num_positions >= (5_100 if batch >= 3 and channels < 144 else 25_000)
    if num_positions >= 84_000:
        return True
    if num_positions < 32_500 or channels >= 144:
        return False
    if side >= 80:
        return num_positions < 38_400
    is_between = 40 <= side < 56 or (28 <= side < 40 and 48 <= batch <= 64)
    return not is_between


def _is_of_many_small(convolution: Convolution) -> bool:
    batch, _, _, side = convolution.x.shape
    return batch >= 5 and side >= 24 and convolution.num_positions < 150_000


def _to_192(convolution: Convolution) -> Tiles | None:
    batch, _, _, side = convolution.x.shape
    if side < 40 or batch < 4:
        return None
    if convolution.num_positions >= 66_000:
        return SQUARE
    return WIDE if convolution.filters >= 192 else None


def _from_128(convolution: Convolution) -> Tiles | None:
    num_positions, (batch, _, _, side) = convolution.num_positions, convolution.x.shape
    if side < 40:
        return _from_128_of_small_images(convolution)
    if batch >= 4:
        return WIDE
    fewest = 4_600 if _has_stride(convolution) else 25_000
    return PAIRED if batch == 3 or num_positions >= fewest else None


def _from_128_of_small_images(convolution: Convolution) -> Tiles | None:
    num_positions, (batch, _, _, side) = convolution.num_positions, convolution.x.shape
    if _has_stride(convolution):
        return PAIRED if num_positions >= 4_400 else WIDE if side >= 24 else None
    if num_positions < 3_400:
        return None
    return WIDE if side >= 20 and batch < 24 else PAIRED


def _from_160(convolution: Convolution) -> Tiles | None:
    return WIDE if convolution.num_positions >= 28_000 and convolution.x.shape[-1] >= 40 else None


def _num_waves(convolution: Convolution) -> float:
    """Of square tiles."""
    return div_up(convolution.num_positions, TILE) * div_up(convolution.filters, TILE) / SQUARE.wave


def _has_stride(convolution: Convolution) -> bool:
    return max(convolution.stride) > 1
