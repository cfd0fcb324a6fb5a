"""Texts of PYTORCH_ALLOC_CONF. tests/virtual_gpu/test_allocator_settings.py compares with torch's own parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.allocator import Settings, parse_settings, settings_from_environment, settings_text
from peaksight.errors import AllocatorSettingsError
from peaksight.units import MIB

fractions = st.floats(1e-300, 1, exclude_max=True)
divisions = st.sampled_from([0, 1, 2, 4, 8, 16])


@st.composite
def some_settings(draw):
    """Settings that torch accepts."""
    large_mb = draw(st.integers(11, 100))
    sizes_mb = st.integers(large_mb, 1000)
    max_split_mb = draw(st.none() | sizes_mb)
    rounding_mb = draw(st.just(large_mb) | sizes_mb)
    return Settings(
        expandable_segments=draw(st.booleans()),
        max_split_size_bytes=None if max_split_mb is None else max_split_mb * MIB,
        max_non_split_rounding_bytes=rounding_mb * MIB,
        roundup_power2_divisions=draw(
            st.tuples(*[divisions] * 16) | divisions.map(lambda division: (division,) * 16),
        ),
        garbage_collection_threshold=draw(st.just(0.0) | fractions),
        large_segment_size_bytes=large_mb * MIB,
        per_process_memory_fraction=draw(st.just(1.0) | st.just(0.0) | fractions),
        throw_on_cudamalloc_oom=draw(st.booleans()),
    )


@given(settings=some_settings())
def test_text_and_back(settings):
    """The text of settings reads as the same settings."""
    assert parse_settings(settings_text(settings)) == settings


def test_the_text_of_the_defaults_is_empty():
    """Only what differs is named."""
    assert settings_text(Settings()) == ""
    assert settings_text(parse_settings("backend:native,large_segment_size_mb:40")) == "large_segment_size_mb:40"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("expandable_segments:True", "expandable_segments", True),
        ("max_split_size_mb:128", "max_split_size_bytes", 128 * MIB),
        ("max_split_size_mb:128,max_split_size_mb:256", "max_split_size_bytes", 256 * MIB),
        (" max_split_size_mb : 1 28 ,", "max_split_size_bytes", 128 * MIB),
        ("max_non_split_rounding_mb:40", "max_non_split_rounding_bytes", 40 * MIB),
        ("large_segment_size_mb:40", "max_non_split_rounding_bytes", 40 * MIB),
        ("large_segment_size_mb:11", "large_segment_size_bytes", 11 * MIB),
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold", 0.8),
        ("per_process_memory_fraction:0.25", "per_process_memory_fraction", 0.25),
        ("throw_on_cudamalloc_oom:True", "throw_on_cudamalloc_oom", True),
        ("roundup_power2_divisions:4", "roundup_power2_divisions", (4,) * 16),
        ("roundup_power2_divisions:[]", "roundup_power2_divisions", (0,) * 16),
        ("roundup_power2_divisions:[4:2,16:8]", "roundup_power2_divisions", (2, 2, 2, 0, 8, *[0] * 11)),
        (
            "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
            "roundup_power2_divisions",
            (1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 8, 8, 8, 8, 8),
        ),
    ],
)
def test_values(text, field, value):
    """Each key sets its field, and what is not named keeps its default."""
    assert getattr(parse_settings(text), field) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("max_split_size:128", "there is no key 'max_split_size'"),
        ("max_split_size_mb=128", "there is no key 'max_split_size_mb=128'"),
        ("max_split_size_mb:19", "max_split_size_mb must be at least 20"),
        ("max_split_size_mb:40,large_segment_size_mb:64", "max_split_size_mb must be at least 64"),
        ("max_non_split_rounding_mb:19", "max_non_split_rounding_mb must be at least 20"),
        ("max_split_size_mb:some", "max_split_size_mb: 'some' is not a number"),
        ("max_split_size_mb", "it ends where a value belongs"),
        ("large_segment_size_mb:10", "large_segment_size_mb: it must be above 10"),
        ("expandable_segments:true", "expandable_segments: 'true' is neither True nor False"),
        ("garbage_collection_threshold:1", "garbage_collection_threshold: it must lie between 0 and 1"),
        ("per_process_memory_fraction:1.5", "per_process_memory_fraction: it must be 0 to 1"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions: 3 is not a power of 2"),
        ("roundup_power2_divisions:[255:2]", "roundup_power2_divisions: 255 is not a power of 2"),
        ("roundup_power2_divisions:[256:3]", "roundup_power2_divisions: 3 is neither 0 nor a power of 2"),
        ("roundup_power2_divisions:[256:2", "roundup_power2_divisions: it ends where a value belongs"),
        ("pinned_num_register_threads:3", "pinned_num_register_threads: 3 is not a power of 2 up to 128"),
        ("backend:mine", "backend: 'mine' is neither native nor cudaMallocAsync"),
    ],
)
def test_wrong_texts(text, complaint):
    """The message names the key or the value."""
    with pytest.raises(AllocatorSettingsError) as caught:
        parse_settings(text)

    assert complaint in str(caught.value)
    assert caught.value.slug == "allocator-settings"


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync", "backend:cudaMallocAsync"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    ],
)
def test_other_allocators_are_refused(variable, value, named):
    """They are named."""
    with pytest.raises(AllocatorSettingsError, match=named) as caught:
        settings_from_environment({variable: value})

    assert caught.value.slug == "allocator-not-simulated"


def test_environment():
    """The CUDA variable wins, even where it is empty; torch looks at the one for HIP only on ROCm."""
    on = "expandable_segments:True"

    assert settings_from_environment({"PYTORCH_ALLOC_CONF": on}).expandable_segments
    assert settings_from_environment({"PYTORCH_CUDA_ALLOC_CONF": on, "PYTORCH_ALLOC_CONF": ""}).expandable_segments
    assert settings_from_environment({"PYTORCH_CUDA_ALLOC_CONF": "", "PYTORCH_ALLOC_CONF": on}) == Settings()
    assert settings_from_environment({"PYTORCH_HIP_ALLOC_CONF": on}) == Settings()
    assert settings_from_environment({"PYTORCH_NO_CUDA_MEMORY_CACHING": "0"}) == Settings()


def test_settings_while_running():
    """As in torch, a new text starts some settings again and leaves the others."""
    base = parse_settings(
        "expandable_segments:True,large_segment_size_mb:40,max_split_size_mb:50,max_non_split_rounding_mb:60,"
        "roundup_power2_divisions:4,garbage_collection_threshold:0.5,per_process_memory_fraction:0.5"
    )
    expected = "expandable_segments:True,large_segment_size_mb:40,per_process_memory_fraction:0.5"

    assert settings_text(parse_settings("", base=base)) == expected
