"""Whether this release of torch has every private name that a simulation needs, of this folder or one below.

One that lacks a name is refused by it instead of giving a wrong number.
"""

import sys

import torch
import torch._library.custom_ops as custom_ops
import torch._library.simple_registry as simple_registry
import torch.utils.data.dataloader as dataloader_module

from peaksight.errors import UnsupportedError
from peaksight.virtual_gpu.torch_private import (
    FakeTensor,
    FakeTensorMode,
    checkpointing,
    fake_tensor,
    foreach_utils,
    guards,
    optimizer_module,
    rebuilding,
    serialization,
)

TESTED_RELEASES = ("2.13.", "2.14.")
PROBES: tuple[tuple[object, str], ...] = (
    (fake_tensor, "init_gpu_context"),
    (FakeTensorMode, "avoid_device_init"),
    (FakeTensorMode, "_cache_key"),
    (FakeTensor, "_normalize_fake_device"),
    (fake_tensor, "_BypassDispatchCache"),
    (fake_tensor, "_DispatchCacheValidEntry"),
    (fake_tensor, "FakeTensorDeviceMismatchError"),
    (torch._C, "_current_autograd_node"),
    (torch._C, "_group_tensors_by_device_and_dtype"),
    (torch._C._autograd, "_get_sequence_nr"),
    (torch._C, "_AutoDispatchBelowAutograd"),
    (torch._C, "_ExcludeDispatchKeyGuard"),
    (torch.autograd.graph, "_engine_run_backward"),
    (optimizer_module, "_foreach_supported_types"),
    (foreach_utils, "_foreach_supported_types"),
    (torch.utils, "swap_tensors"),
    (checkpointing, "_checkpoint_without_reentrant_generator"),
    (checkpointing, "_CachingTorchDispatchMode"),
    (checkpointing, "_CachedTorchDispatchMode"),
    (checkpointing, "_checkpoint_hook"),
    (checkpointing, "_recomputation_hook"),
    (torch._C, "_set_dispatch_mode"),
    (torch._C, "_unset_dispatch_mode"),
    (torch._C, "_set_only_lift_cpu_tensors"),
    (torch._C, "_swap_tensor_impl"),
    (torch._C, "_storage_Use_Count"),
    (torch.Tensor, "_use_count"),
    (torch._C, "_get_sdp_priority_order"),
    (torch._C, "_set_sdp_priority_order"),
    (torch._C, "_conv_determine_backend_memory_format"),
    (custom_ops, "OPDEFS"),
    (simple_registry, "find_torch_dispatch_rule"),
    (simple_registry, "singleton"),
    (simple_registry.GenericTorchDispatchRuleHolder(""), "_data"),
    (torch._C, "_dispatch_get_registrations_for_dispatch_key"),
    (torch._C, "_dispatch_has_kernel_for_dispatch_key"),
    (guards, "active_fake_mode"),
    (guards, "detect_fake_mode"),
    (rebuilding, "_validate_loaded_sparse_tensors"),
    (rebuilding, "_sparse_tensors_to_validate"),
    (serialization, "_is_zipfile"),
    (serialization, "_should_read_directly"),
    (torch.UntypedStorage, "_set_from_file"),
    (torch.cuda.memory, "_record_memory_history"),
    (dataloader_module, "_BaseDataLoaderIter"),
    (dataloader_module, "_SingleProcessDataLoaderIter"),
)
if torch.distributed.is_available():
    PROBES += (
        (torch.distributed.distributed_c10d, "_new_process_group_helper"),
        (torch.distributed.distributed_c10d, "_world"),
        (sys.modules["torch.distributed.rendezvous"], "_create_c10d_store"),
        (torch.distributed, "_broadcast_coalesced"),
        (torch.distributed.Reducer, "_rebuild_buckets"),
        (torch._C._distributed_c10d, "_create_work_from_future"),
        (torch.nn.parallel.distributed, "_verify_param_shape_across_processes"),
    )


def check_release() -> str | None:
    """A warning when this torch is not one of the tested releases; UnsupportedError when it lacks a needed name."""
    missing = [f"{getattr(owner, '__name__', owner)}.{name}" for owner, name in PROBES if not hasattr(owner, name)]
    if missing:
        raise UnsupportedError(
            f"Can't simulate on torch {torch.__version__}: it has no {missing[0]}. Install torch 2.13 or 2.14.",
            slug="torch-release",
        )
    if torch.__version__.startswith(TESTED_RELEASES):
        return None
    return f"torch {torch.__version__} has every name that a simulation needs, but only 2.13 and 2.14 are tested"
