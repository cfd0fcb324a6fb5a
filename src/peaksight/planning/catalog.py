"""Every kind of fix, in the order in which they are tried."""

from peaksight.planning.fixes import (
    allocator_settings,
    autocast,
    bucket_views,
    checkpointing,
    chunked_cross_entropy,
    fused_attention,
    low_precision_state,
    micro_batches,
    no_kv_cache,
    optimizer_implementation,
    optimizer_in_backward,
    own_flags,
    saved_on_host,
    smaller_inputs,
)
from peaksight.planning.kind import FixKind

FIXES: tuple[FixKind, ...] = (
    optimizer_implementation.FIX,
    allocator_settings.FIX,
    chunked_cross_entropy.FIX,
    optimizer_in_backward.FIX,
    autocast.FIX,
    fused_attention.FIX,
    no_kv_cache.FIX,
    bucket_views.FIX,
    checkpointing.FIX,
    micro_batches.FIX,
    own_flags.FIX,
    low_precision_state.FIX,
    saved_on_host.FIX,
    smaller_inputs.FIX,
)
