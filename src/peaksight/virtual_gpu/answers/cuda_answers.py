"""`torch.cuda` answers like the chosen card."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from peaksight.gpus import Card
from peaksight.virtual_gpu.answers.generators import Generator
from peaksight.virtual_gpu.answers.streams import CurrentStream, generic_answers, stream_answers
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.memory.ledger import Ledger
from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.runtime_errors import INVALID_DEVICE, runtime_error
from peaksight.virtual_gpu.tensors import tensor_types
from peaksight.virtual_gpu.tensors.devices import for_cpp, for_python


def install(patches: Patches, card: Card, rules: DeviceRules, ledger: Ledger) -> None:
    """Make `torch.cuda`, `torch.accelerator` and their C names answer for `card` until `patches` is left."""
    streams = CurrentStream(ledger)
    tensor_types.install(patches)
    for owner, answers in (
        (torch.cuda, device_answers(card, rules) | stream_answers(streams) | random_answers()),
        (torch.cuda.random, random_answers()),
        (torch.cuda.streams, stream_answers(streams)),
        (torch, generic_answers() | {"Generator": Generator}),
        (torch._C, low_level_answers(ledger)),
        (torch._C._nn, {"_parse_to": _parse_to(torch._C._nn._parse_to)}),
        (torch.version, {"cuda": rules.cuda}),
        (torch.cuda.nvtx, {"_nvtx": nvtx_answers()}),
        (torch.nn.parallel.comm, {"scatter": _scatter}),
        (torch.distributions.Distribution, {"_validate_args": False}),
        (torch.backends.cuda, {"is_built": _always(True)}),
        (torch.backends.cudnn, {"is_available": _always(True)}),
        (torch.accelerator, accelerator_answers(streams)),
    ):
        for name, answer in answers.items():
            if owner is not torch.accelerator or hasattr(owner, name):
                patches.set(owner, name, answer)


def _always(value: Any) -> Any:
    return lambda *args, **kwargs: value


def device_answers(card: Card, rules: DeviceRules) -> dict[str, Any]:
    """Names, numbers and capabilities; initialisation does nothing."""

    def set_device(device: Any) -> None:
        index = for_cpp(device)
        if isinstance(index, torch.device) and index.index:
            raise runtime_error(INVALID_DEVICE, rules.torch)

    major, minor = card.capability
    properties = SimpleNamespace(
        name=card.product_name,
        major=major,
        minor=minor,
        total_memory=card.total_bytes,
        multi_processor_count=card.multi_processor_count,
        L2_cache_size=card.l2_bytes,
        warp_size=32,
        max_threads_per_multi_processor=card.threads_per_multi_processor,
        regs_per_multiprocessor=65536,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )
    return {
        "_lazy_init": _always(None),
        "init": _always(None),
        "_is_compiled": _always(True),
        "is_available": _always(True),
        "is_initialized": _always(True),
        "_is_in_bad_fork": _always(False),
        "device_count": _always(1),
        "current_device": _always(0),
        "set_device": set_device,
        "_exchange_device": _always(0),
        "_maybe_exchange_device": _always(0),
        "synchronize": _always(None),
        "ipc_collect": _always(None),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or major >= 8,
        "is_tf32_supported": _always(major >= 8),
        "get_device_capability": _always((major, minor)),
        "get_device_name": _always(card.product_name),
        "get_device_properties": _always(properties),
        "get_arch_list": _always([f"sm_{major}{minor}"]),
        "is_current_stream_capturing": _always(False),
        "can_device_access_peer": _always(False),
        "utilization": _always(0),
    }


def random_answers() -> dict[str, Any]:
    """The device generator draws nothing: its state is sixteen bytes on the host."""
    return {
        "manual_seed": _always(None),
        "manual_seed_all": _always(None),
        "seed": _always(None),
        "seed_all": _always(None),
        "initial_seed": _always(0),
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
        "set_rng_state": _always(None),
        "set_rng_state_all": _always(None),
        "default_generators": (Generator("cuda"),),
    }


def nvtx_answers() -> SimpleNamespace:
    """Ranges for a profiler that is not there."""
    names = ("markA", "rangePushA", "rangePop", "rangeStartA", "rangeEnd")
    return SimpleNamespace(**dict.fromkeys(names, _always(0)))


def low_level_answers(ledger: Ledger) -> dict[str, Any]:
    """The C names that libraries call directly."""
    return {
        "_cuda_setDevice": _always(None),
        "_cuda_getDevice": _always(0),
        "_cuda_exchangeDevice": _always(0),
        "_cuda_maybeExchangeDevice": _always(0),
        "_cuda_getDeviceCount": _always(1),
        "_get_accelerator": _always(torch.device("cuda")),
        "_accelerator_exchangeDevice": _always(0),
        "_accelerator_maybeExchangeDevice": _always(0),
        "_cuda_getCurrentRawStream": lambda device: ledger.stream,
        "_cuda_synchronize": _always(None),
        "_cuda_clearCublasWorkspaces": _always(None),
        "_cuda_isInBadFork": _always(False),
    }


def _scatter(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor]:
    """nn.DataParallel on one card gives it the whole batch."""
    return (tensor.to(for_cpp("cuda")),)


def _parse_to(parse: Callable) -> Callable:
    """The arguments of `Module.to`, where a number names a device of the card; a CPU build knows of none."""
    return lambda *args, **kwargs: parse(*(for_python(for_cpp(a)) for a in args[:1]), *args[1:], **kwargs)


def accelerator_answers(streams: CurrentStream) -> dict[str, Any]:
    """`torch.accelerator` names the same card."""
    return {
        "is_available": _always(True),
        "device_count": _always(1),
        "current_accelerator": _always(torch.device("cuda")),
        "current_device_index": _always(0),
        "current_device_idx": _always(0),
        "set_device_index": _always(None),
        "set_device_idx": _always(None),
        "synchronize": _always(None),
        "current_stream": lambda device=None: streams.current,
        "set_stream": streams.set,
    }
