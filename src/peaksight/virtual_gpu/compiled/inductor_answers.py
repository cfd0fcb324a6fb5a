"""What Inductor asks a card or Triton's driver for while it plans, answered without either."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part

# In this process, and without what earlier ones left on the disk.
_SETTINGS: dict[str, dict[str, Any]] = {
    "torch._dynamo.config": {"automatic_dynamic_local_pgo": False},
    "torch._functorch.config": {"enable_autograd_cache": False},
    "torch._inductor.config": {"autotune_local_cache": False, "compile_threads": 1, "fx_graph_cache": False},
}


def answer_inductor(patches: Patches) -> None:
    """Answer until `patches` is left."""
    triton = part("torch.utils._triton")
    patches.set(triton, "triton_hash_with_backend", lambda: "")
    patches.set_wherever_imported("has_triton", lambda: True, of=triton, also_as="has_triton")
    patches.set(part("torch._inductor.runtime.triton_helpers"), "set_driver_to_gpu", lambda: None)
    _answer_interface(patches, part("torch._dynamo.device_interface"))
    part("torch._inductor.runtime.hints").DeviceProperties.create.cache_clear()
    part("torch._inductor.utils").clear_caches()
    folding = part("torch._inductor.constant_folding").ConstantFolder
    patches.set(folding, "run", _on_host(folding.run))
    # It measures whether a product of odd sizes is faster with padding, which it is where it is bound by computing:
    # that was asked before.
    patches.set(part("torch._inductor.fx_passes.pad_mm"), "get_cached_should_pad", lambda key: True)
    for module, settings in _SETTINGS.items():
        patches.enter_context(part(module).patch(**settings))


def _answer_interface(patches: Patches, module: Any) -> None:
    """Dynamo's interface to a card has the functions of torch.cuda as they were when it was imported, and caches."""
    interface = module.CudaInterface
    for name, function in list(vars(interface).items()):
        answer = getattr(torch.cuda, name, None) or getattr(torch.cuda, f"_{name}", None)
        if isinstance(function, staticmethod) and function.__func__.__module__ != module.__name__ and answer:
            patches.set(interface, name, staticmethod(answer))
    patches.set(interface, "get_raw_stream", staticmethod(torch._C._cuda_getCurrentRawStream))
    for name in ("device", "Event", "Stream"):
        patches.set(interface, name, getattr(torch.cuda, name))
    for cache in ("caching_worker_device_properties", "caching_worker_current_devices"):
        patches.set(module, cache, {})


class _Host(TorchDispatchMode):
    """What is made for the card is made on the host."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {name: _host_for(value) for name, value in (kwargs or {}).items()}
        return func(*map(_host_for, args), **kwargs)


def _host_for(value: Any) -> Any:
    return torch.device("cpu") if isinstance(value, torch.device) else value


def _on_host(run: Callable[..., Any]) -> Callable[..., Any]:
    """Folding makes tensors of one element for the constants that it finds."""

    def run_on_host(*args: Any, **kwargs: Any) -> Any:
        with _Host():
            return run(*args, **kwargs)

    return run_on_host
