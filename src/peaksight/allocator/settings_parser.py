"""Reads the text of `PYTORCH_ALLOC_CONF` as torch does, what it lets pass included.

The rules are those of `AcceleratorAllocatorConfig` (c10/core/AllocatorConfig.cpp) and `CUDAAllocatorConfig`
(c10/cuda/CUDAAllocatorConfig.cpp) in torch 2.13 and 2.14.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from peaksight.allocator.config_tokens import BadConfigError, ConfigTokens, to_bool, to_double, to_size_t
from peaksight.allocator.settings import ROUNDUP_INTERVALS, Settings
from peaksight.allocator.sizes import MIN_LARGE_ALLOC
from peaksight.errors import AllocatorSettingsError
from peaksight.units import MIB

_MAX_MB = ((1 << 64) - 1) // MIB
_MAX_REGISTER_THREADS = 128


def settings_from_environment(environ: Mapping[str, str]) -> Settings:
    """The settings of a process with the variables `environ`.

    `PYTORCH_CUDA_ALLOC_CONF` wins over `PYTORCH_ALLOC_CONF`, even where it is empty (measured on torch 2.11 to 2.14).

    Raises:
        AllocatorSettingsError: torch would refuse the text, or it asks for an allocator that is not simulated.
    """
    if environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING") == "1":
        raise AllocatorSettingsError(
            "PYTORCH_NO_CUDA_MEMORY_CACHING turns off the caching allocator, the only one that is simulated: unset it.",
            slug="allocator-not-simulated",
        )
    return parse_settings(environ.get("PYTORCH_CUDA_ALLOC_CONF", environ.get("PYTORCH_ALLOC_CONF", "")))


def parse_settings(text: str, *, base: Settings | None = None) -> Settings:
    """The settings that `text` gives.

    Args:
        text: As in `PYTORCH_ALLOC_CONF`: `max_split_size_mb:128,expandable_segments:True`.
        base: The settings of an allocator that runs; as in torch, some of them stay unless `text` names them, and the
            others start again from their defaults.

    Raises:
        AllocatorSettingsError: torch would refuse the text, or it asks for an allocator that is not simulated.
    """
    try:
        return _settings(_pairs(ConfigTokens(text)), base or Settings())
    except BadConfigError as error:
        raise AllocatorSettingsError(
            f"torch refuses the allocator settings '{text}': {error}; "
            "correct them in PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF.",
            slug="allocator-settings",
        ) from error


def _pairs(tokens: ConfigTokens) -> list[tuple[str, Any]]:
    return [(key, _value(key, tokens)) for key in tokens.take_keys()]


def _value(key: str, tokens: ConfigTokens) -> Any:
    if key not in _KEYS:
        raise BadConfigError(f"there is no key '{key}'")
    tokens.skip()
    try:
        return _KEYS[key].read(tokens)
    except BadConfigError as error:
        raise BadConfigError(f"{key}: {error}") from error


def _settings(pairs: list[tuple[str, Any]], base: Settings) -> Settings:
    given = {field: value for key, value in pairs if (field := _KEYS[key].field) is not None}
    large_segment_size = given.get("large_segment_size_bytes", base.large_segment_size_bytes)
    for key, value in pairs:
        if key in ("max_split_size_mb", "max_non_split_rounding_mb") and value < large_segment_size:
            raise BadConfigError(f"{key} must be at least {large_segment_size // MIB}, the size of a large segment")
    started_again = replace(
        base,
        max_split_size_bytes=None,
        max_non_split_rounding_bytes=large_segment_size,
        roundup_power2_divisions=(0,) * ROUNDUP_INTERVALS,
        garbage_collection_threshold=0.0,
    )
    return replace(started_again, **given)


def _read_bool(tokens: ConfigTokens) -> bool:
    return to_bool(tokens.take())


def _read_size(tokens: ConfigTokens) -> int:
    return min(to_size_t(tokens.take()), _MAX_MB) * MIB


def _read_large_segment_size(tokens: ConfigTokens) -> int:
    size = _read_size(tokens)
    if size <= MIN_LARGE_ALLOC:
        raise BadConfigError(f"it must be above {MIN_LARGE_ALLOC // MIB}")
    return size


def _read_threshold(tokens: ConfigTokens) -> float:
    threshold = to_double(tokens.take())
    if not 0 < threshold < 1:
        raise BadConfigError("it must lie between 0 and 1")
    return threshold


def _read_fraction(tokens: ConfigTokens) -> float:
    fraction = to_double(tokens.take())
    if not 0 <= fraction <= 1:
        raise BadConfigError("it must be 0 to 1")
    return fraction


def _read_divisions(tokens: ConfigTokens) -> tuple[int, ...]:
    first = tokens.take()
    if first == "[":
        return _read_intervals(tokens)
    division = to_size_t(first)
    if not _is_power_of_two(division):
        raise BadConfigError(f"{first} is not a power of 2")
    return (division,) * ROUNDUP_INTERVALS


def _read_intervals(tokens: ConfigTokens) -> tuple[int, ...]:
    """The divisions of `[256:1,512:2,>:8]`: below the first interval as in it, and behind `>` for all that follow."""
    divisions, last_index, is_first = [0] * ROUNDUP_INTERVALS, 0, True
    while (start := tokens.take()) != "]":
        tokens.skip()
        division = to_size_t(tokens.take())
        if division and not _is_power_of_two(division):
            raise BadConfigError(f"{division} is neither 0 nor a power of 2")
        if start == ">":
            divisions[last_index + 1 :] = [division] * (ROUNDUP_INTERVALS - last_index - 1)
        else:
            last_index = _interval(start)
            if is_first:
                divisions[:last_index] = [division] * last_index
            divisions[last_index], is_first = division, False
        if tokens.peek() != "]":
            tokens.skip()
    return tuple(divisions)


def _interval(start: str) -> int:
    mb = to_size_t(start)
    if not _is_power_of_two(mb):
        raise BadConfigError(f"{start} is not a power of 2")
    return min(mb.bit_length() - 1, ROUNDUP_INTERVALS - 1)


def _read_backend(tokens: ConfigTokens) -> str:
    backend = tokens.take()
    if backend == "cudaMallocAsync":
        raise AllocatorSettingsError(
            "backend:cudaMallocAsync gives memory by the driver's own pool, which is not simulated: leave it out to "
            "see what PyTorch's caching allocator needs.",
            slug="allocator-not-simulated",
        )
    if backend != "native":
        raise BadConfigError(f"'{backend}' is neither native nor cudaMallocAsync")
    return backend


def _read_register_threads(tokens: ConfigTokens) -> int:
    threads = to_size_t(tokens.take())
    if not _is_power_of_two(threads) or threads > _MAX_REGISTER_THREADS:
        raise BadConfigError(f"{threads} is not a power of 2 up to {_MAX_REGISTER_THREADS}")
    return threads


def _read_reserve_segment_size(tokens: ConfigTokens) -> int:
    size = to_size_t(tokens.take())
    if size == 0:
        raise BadConfigError("it must be above 0")
    return size


def _read_number(tokens: ConfigTokens) -> int:
    return to_size_t(tokens.take())


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


class _Key(NamedTuple):
    """How the value of a key is read, and the field of `Settings` for it; None changes no device memory."""

    read: Callable[[ConfigTokens], Any]
    field: str | None = None


_KEYS = {
    "expandable_segments": _Key(_read_bool, "expandable_segments"),
    "max_split_size_mb": _Key(_read_size, "max_split_size_bytes"),
    "max_non_split_rounding_mb": _Key(_read_size, "max_non_split_rounding_bytes"),
    "roundup_power2_divisions": _Key(_read_divisions, "roundup_power2_divisions"),
    "garbage_collection_threshold": _Key(_read_threshold, "garbage_collection_threshold"),
    "large_segment_size_mb": _Key(_read_large_segment_size, "large_segment_size_bytes"),
    "per_process_memory_fraction": _Key(_read_fraction, "per_process_memory_fraction"),
    "throw_on_cudamalloc_oom": _Key(_read_bool, "throw_on_cudamalloc_oom"),
    "backend": _Key(_read_backend),
    "graph_capture_record_stream_reuse": _Key(_read_bool),
    "release_lock_on_cudamalloc": _Key(_read_bool),
    "release_lock_on_hipmalloc": _Key(_read_bool),
    "pinned_free_catch_all": _Key(_read_bool),
    "pinned_max_cached_size_mb": _Key(_read_number),
    "pinned_max_round_threshold_mb": _Key(_read_number),
    "pinned_num_register_threads": _Key(_read_register_threads),
    "pinned_reserve_segment_size_mb": _Key(_read_reserve_segment_size),
    "pinned_use_background_threads": _Key(_read_bool),
    "pinned_use_cuda_host_register": _Key(_read_bool),
    "pinned_use_hip_host_register": _Key(_read_bool),
}
