"""The parser of settings beside torch's own."""

import pytest
import torch

from peaksight.allocator import parse_settings
from peaksight.errors import AllocatorSettingsError

# Without CUDA, torch leaves unknown keys to a backend that is not there.
pytestmark = [pytest.mark.torch, pytest.mark.skipif(torch.version.cuda is None, reason="torch is a CPU build")]

set_allocator_settings = torch._C._accelerator_setAllocatorSettings

SIZES = [
    "20",
    "19",
    "0100",
    "0x80",
    "30abc",
    "-5",
    "1.5",
    "1e3",
    "+128",
    "18446744073709551616",
    "abc",
    "",
    ":1",
    "[9]",
]
FRACTIONS = ["0", "-0.0", "0.5", ".5", "1", "1.5", "-1", "nan", "inf", "1e-400", "0x1p-1", "0.5.5", "0.8x", "x", ""]
DIVISIONS = ["4", "0", "3", "4x", "-4", "4,8", "[]", "[256:0]", "[256:3]", "[255:2]", "[0:2]", "[256:1,512:2,>:8]"]
LISTS = [
    "[256:2",
    "[256:2,",
    "[256:2,]",
    "[256]",
    "[256,2]",
    "[256:2,512]",
    "[>:8,256:2]",
    "[x:2]",
    "[256:2]x",
    "[256:-4]",
]
BOOLS = ["True", "False", "true", "1", "[True]", ""]
WHOLE = [
    "",
    ",",
    ":",
    "expandable_segments",
    "expandable_segments:True,",
    "expandable_segments:True:max_split_size_mb:128",
    "expandable_segments:True max_split_size_mb:128",
    "expandable_segments:False,,max_split_size_mb:128",
    "\tmax_split_size_mb : 12 8\n",
    "max_split_size_mb,128",
    "max_split_size_mb=128",
    "max_split_size_mb:128;expandable_segments:True",
    "max_split_size_mb:40,large_segment_size_mb:64",
    "max_split_size_mb:15,large_segment_size_mb:12",
    "large_segment_size_mb:12,large_segment_size_mb:14,max_split_size_mb:13",
    "large_segment_size_mb:30,max_non_split_rounding_mb:20",
    "large_segment_size_mb:10",
    "large_segment_size_mb:11",
    "expandable_segments_page_size:20",
    "expandable_segments_handle_type:posix_fd",
    "backend:native",
    "backend:mine",
    "foo:[1,2],max_split_size_mb:20",
]
BY_KEY = {
    "max_split_size_mb": SIZES,
    "max_non_split_rounding_mb": SIZES,
    "garbage_collection_threshold": FRACTIONS,
    "per_process_memory_fraction": FRACTIONS,
    "roundup_power2_divisions": DIVISIONS + LISTS,
    "pinned_num_register_threads": ["8", "3", "0", "256"],
    "pinned_reserve_segment_size_mb": ["16", "0", "-1"],
    "pinned_max_round_threshold_mb": ["16", "x"],
    "pinned_max_cached_size_mb": ["16", "x"],
    **dict.fromkeys(
        [
            "expandable_segments",
            "throw_on_cudamalloc_oom",
            "graph_capture_record_stream_reuse",
            "release_lock_on_cudamalloc",
            "release_lock_on_hipmalloc",
            "pinned_free_catch_all",
            "pinned_use_background_threads",
            "pinned_use_cuda_host_register",
            "pinned_use_hip_host_register",
        ],
        BOOLS,
    ),
}
TEXTS = WHOLE + [f"{key}:{value}" for key, values in BY_KEY.items() for value in values]


@pytest.fixture(autouse=True)
def _torch_as_before():
    set_allocator_settings("large_segment_size_mb:20")
    yield
    set_allocator_settings("large_segment_size_mb:20,expandable_segments:False,per_process_memory_fraction:1")


@pytest.mark.parametrize("text", TEXTS)
def test_refuses_what_torch_refuses(text):
    """And nothing else."""
    assert accepts(parse_settings, text, AllocatorSettingsError) == accepts(
        set_allocator_settings, text, (ValueError, IndexError, RuntimeError)
    )


def accepts(parse, text, error):
    """Whether `parse` takes `text`."""
    try:
        parse(text)
    except error:
        return False
    return True
