"""The description of a card by which XLA compiles for it on a machine without one.

Derived from the card table: sizes and speeds are the card's, what its generation fixes is from the CUDA C++ Programming
Guide, technical specifications per compute capability. Not known are measured rates of single instructions, by which
newer releases of XLA choose between some fusions.
"""

from peaksight.errors import UnsupportedError
from peaksight.gpus import Card

# The fp32 lanes of a multiprocessor.
_LANES = {
    **dict.fromkeys(((7, 5), (8, 0)), 64),
    **dict.fromkeys(((8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0), (12, 1)), 128),
}

_TEXT = """gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: {shared}
  threads_per_core_limit: {threads}
  core_count: {cores}
  fpus_per_core: {lanes}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth}
  l2_cache_size: {l2}
  clock_rate_ghz: {clock:.3f}
  device_memory_size: {memory}
  shared_memory_per_block_optin: {optin}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 19 }}
runtime_version {{ major: 13 minor: 0 patch: 0 }}
device_description_str: "{name}"
"""


def target_config(card: Card) -> str:
    """A `GpuTargetConfigProto` of `card` as text; UnsupportedError for a generation that XLA no longer compiles for."""
    if card.capability not in _LANES:
        raise UnsupportedError(
            f"Can't compile for a {card.product_name}: XLA's compiler needs a card of compute capability 7.5 or newer. "
            "Choose another one with --gpu.",
            slug="jax-card",
        )
    lanes = _LANES[card.capability]
    return _TEXT.format(
        shared=card.shared_bytes_per_multi_processor,
        optin=card.shared_bytes_per_block,
        lanes=lanes,
        threads=card.threads_per_multi_processor,
        cores=card.multi_processor_count,
        bandwidth=card.bandwidth_bytes_per_second,
        l2=card.l2_bytes,
        clock=card.fp32_flop_per_second / (2 * card.multi_processor_count * lanes) / 1e9,
        memory=card.total_bytes,
        major=card.capability[0],
        minor=card.capability[1],
        name=card.product_name,
    )
