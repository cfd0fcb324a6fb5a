"""The private names of PyTorch's compiler, in one place, each looked for before anything is compiled.

Its packages take seconds to import, so that they are not before a script calls `torch.compile`.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

NAMES = {
    "torch": ("_TorchCompileInductorWrapper.__call__",),
    "torch._dynamo": ("reset",),  # first of its package: a stand-in gives way to it
    "torch._guards": ("CompileContext.current_compile_id",),
    "torch._dynamo.bytecode_transformation": (
        "_cached_cleaned_instructions",
        "_clone_instructions",
        "create_instruction",
        "update_offsets",
        "devirtualize_jumps",
    ),
    "torch._dynamo.config": ("automatic_dynamic_local_pgo",),
    "torch._dynamo.convert_frame": ("CatchErrorsWrapper.__call__", "ConvertFrameReturn"),
    "torch._dynamo.device_interface": (
        "CudaInterface",
        "caching_worker_device_properties",
        "caching_worker_current_devices",
    ),
    "torch._dynamo.guards": ("CheckFunctionManager.__init__",),
    "torch._functorch.config": ("enable_autograd_cache",),
    "torch._functorch.aot_autograd": ("make_boxed_func",),
    "torch._inductor": ("list_mode_options",),
    "torch._inductor.async_compile": ("AsyncCompile.triton", "AsyncCompile.cpp_pybinding"),
    "torch._inductor.codecache": ("PyCodeCache.load",),
    "torch._inductor.compile_fx": ("_compile_fx_inner",),
    "torch._inductor.config": ("compile_threads", "fx_graph_cache"),
    "torch._inductor.constant_folding": ("ConstantFolder.run",),
    "torch._inductor.fx_passes.pad_mm": ("get_cached_should_pad",),
    "torch._inductor.graph": ("GraphLowering._compile_to_module_lines",),
    "torch._inductor.runtime.hints": ("DeviceProperties.create.cache_clear",),
    "torch._inductor.runtime.triton_helpers": ("set_driver_to_gpu",),
    "torch._inductor.select_algorithm": ("AlgorithmSelectorCache.__call__",),
    "torch._inductor.sizevars": ("SizeVarAllocator.optimization_hints",),
    "torch._inductor.utils": ("clear_caches", "clone_preserve_strides"),
    "torch._inductor.virtualized": ("V",),
    "torch._subclasses.functional_tensor": ("FunctionalTensor.__torch_dispatch__", "FunctionalTensorMode"),
    "torch.fx.experimental.proxy_tensor": ("CONSTANT_NUMEL_LIMIT", "ProxyTorchDispatchMode.__torch_dispatch__"),
    "torch.utils._triton": ("has_triton", "has_triton_package", "triton_hash_with_backend"),
}
# What the written programs call.
PROGRAM_NAMES = ("_empty_strided_cuda", "_reinterpret_tensor")


def load() -> str | None:
    """Import the compiler; returns what this PyTorch lacks for it, None where nothing is missing."""
    for module, names in NAMES.items():
        for name in names:
            if not _has(importlib.import_module(module), name):
                return f"{module}.{name}"
    if not part("torch.utils._triton").has_triton_package():
        return "triton"
    return next((name for name in PROGRAM_NAMES if not hasattr(program_functions(), name)), None)


def part(name: str) -> Any:
    """The module `name` of the compiler, once it is loaded."""
    return sys.modules[name]


def program_functions() -> Any:
    """Where the written programs get their allocations from."""
    import torch

    return torch._C._dynamo.guards


def skipped_frame(*, and_callees: bool) -> Any:
    """What tells Dynamo to run a frame as it is, `and_callees` of it too."""
    import torch

    frames = torch._C._dynamo.eval_frame
    skip, default = frames._FrameAction.SKIP, frames._FrameAction.DEFAULT
    return part("torch._dynamo.convert_frame").ConvertFrameReturn(
        frame_exec_strategy=frames._FrameExecStrategy(skip, skip if and_callees else default), apply_to_code=True
    )


def _has(module: ModuleType, path: str) -> bool:
    owner: Any = module
    for name in path.split("."):
        if not hasattr(owner, name):
            return False
        owner = getattr(owner, name)
    return True
