"""Every kind of fix, in the order in which they are tried."""

from peaksight.planning.fixes import (
    allocator_settings,
    autocast,
    bfloat16_weights,
    bucket_views,
    checkpointing,
    chunked_cross_entropy,
    cloned_views,
    detached_sums,
    fused_attention,
    gradients_to_none,
    labelled_positions,
    low_precision_state,
    micro_batches,
    no_grad,
    no_kv_cache,
    optimizer_implementation,
    optimizer_in_backward,
    optimizer_on_host,
    own_flags,
    released_outputs,
    row_chunks,
    saved_on_host,
    separate_backwards,
    sharding,
    smaller_inputs,
)
from peaksight.planning.jax_fixes import (
    cast_before,
    checkpointed_loss,
    donation,
    mem_fraction,
    prevent_cse,
    remat_policies,
)
from peaksight.planning.jax_fixes import sharding as jax_sharding
from peaksight.planning.kind import FixKind

FIXES: tuple[FixKind, ...] = (
    detached_sums.FIX,
    no_grad.FIX,
    released_outputs.FIX,
    gradients_to_none.FIX,
    cloned_views.FIX,
    separate_backwards.FIX,
    optimizer_implementation.FIX,
    allocator_settings.FIX,
    chunked_cross_entropy.FIX,
    optimizer_in_backward.FIX,
    autocast.FIX,
    fused_attention.FIX,
    no_kv_cache.FIX,
    bucket_views.FIX,
    checkpointing.FIX,
    row_chunks.FIX,
    micro_batches.FIX,
    own_flags.FIX,
    low_precision_state.FIX,
    saved_on_host.FIX,
    optimizer_on_host.FIX,
    bfloat16_weights.FIX,
    labelled_positions.FIX,
    sharding.FIX,
    smaller_inputs.FIX,
)

# Those for scripts under JAX.
JAX_FIXES: tuple[FixKind, ...] = (
    donation.FIX,
    cast_before.FIX,
    prevent_cse.FIX,
    remat_policies.FIX,
    checkpointed_loss.FIX,
    mem_fraction.FIX,
    jax_sharding.FIX,
)
