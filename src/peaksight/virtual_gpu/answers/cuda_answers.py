"""`torch.cuda` answers like the chosen cards."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from peaksight.gpus import Card
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.answers.generators import Generator
from peaksight.virtual_gpu.answers.streams import CurrentStreams, generic_answers, stream_answers
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors import tensor_types
from peaksight.virtual_gpu.tensors.devices import current_device, exchange_device, for_cpp, for_python


def install(patches: Patches, card: Card, rules: DeviceRules, devices: Devices) -> None:
    """Make `torch.cuda`, `torch.accelerator` and their C names answer for cards like `card` until `patches` is left."""
    streams = CurrentStreams(devices)
    patches.callback(exchange_device, 0)
    tensor_types.install(patches)
    for owner, answers in (
        (torch.cuda, device_answers(card, devices) | stream_answers(streams) | random_answers(devices)),
        (torch.cuda.random, random_answers(devices)),
        (torch.cuda.streams, stream_answers(streams)),
        (torch, generic_answers() | {"Generator": Generator}),
        (torch._C, low_level_answers(devices)),
        (torch._C._nn, {"_parse_to": _parse_to(torch._C._nn._parse_to)}),
        (torch.version, {"cuda": rules.cuda}),
        (torch.cuda.nvtx, {"_nvtx": nvtx_answers()}),
        (torch.distributions.Distribution, {"_validate_args": False}),
        (torch.backends.cuda, {"is_built": _always(True)}),
        (torch.backends.cudnn, {"is_available": _always(True)}),
        (torch.accelerator, accelerator_answers(streams, devices)),
    ):
        for name, answer in answers.items():
            if owner is not torch.accelerator or hasattr(owner, name):
                patches.set(owner, name, answer)


def _always(value: Any) -> Any:
    return lambda *args, **kwargs: value


def device_answers(card: Card, devices: Devices) -> dict[str, Any]:
    """Names, numbers and capabilities; initialisation does nothing."""

    def get_device_properties(device: Any = None) -> SimpleNamespace:
        index = torch.cuda._utils._get_device_index(device, optional=True)
        if not 0 <= index < devices.count:
            raise AssertionError("Invalid device id")
        return properties

    major, minor = card.capability
    properties = _properties_of(card)
    return {
        "_lazy_init": _always(None),
        "init": _always(None),
        "_is_compiled": _always(True),
        "is_available": lambda: devices.count > 0,
        "is_initialized": _always(True),
        "_is_in_bad_fork": _always(False),
        "device_count": lambda: devices.count,
        "current_device": current_device,
        "set_device": _set_device(devices),
        "_exchange_device": devices.exchange,
        "_maybe_exchange_device": devices.exchange,
        "synchronize": _always(None),
        "ipc_collect": _always(None),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or major >= 8,
        "is_tf32_supported": _always(major >= 8),
        "get_device_capability": lambda device=None: (get_device_properties(device).major, minor),
        "get_device_name": lambda device=None: get_device_properties(device).name,
        "get_device_properties": get_device_properties,
        "get_arch_list": _always([f"sm_{major}{minor}"]),
        "is_current_stream_capturing": _always(False),
        "can_device_access_peer": _peers(card, devices),
        "utilization": _always(0),
    }


def _properties_of(card: Card) -> SimpleNamespace:
    """As `torch.cuda.get_device_properties` gives them; sizes in bytes."""
    major, minor = card.capability
    return SimpleNamespace(
        name=card.product_name,
        major=major,
        minor=minor,
        total_memory=card.total_bytes,
        multi_processor_count=card.multi_processor_count,
        L2_cache_size=card.l2_bytes,
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=card.threads_per_multi_processor,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=card.shared_bytes_per_block,
        shared_memory_per_multiprocessor=card.shared_bytes_per_multi_processor,
        regs_per_multiprocessor=65536,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
        uuid="00000000-0000-0000-0000-000000000000",
    )


def _set_device(devices: Devices) -> Callable[[Any], None]:
    def set_device(device: Any) -> None:
        devices.exchange(device)

    return set_device


def _peers(card: Card, devices: Devices) -> Callable[[Any, Any], bool]:
    def can_device_access_peer(device: Any, peer_device: Any) -> bool:
        for each in (device, peer_device):
            if not 0 <= torch.cuda._utils._get_device_index(each, optional=True) < devices.count:
                raise AssertionError("Invalid device id" if each is device else "Invalid peer device id")
        return for_cpp(device) != for_cpp(peer_device) and card.has_peers

    return can_device_access_peer


def random_answers(devices: Devices) -> dict[str, Any]:
    """The device generators draw nothing: their state is sixteen bytes on the host."""
    return {
        "manual_seed": _always(None),
        "manual_seed_all": _always(None),
        "seed": _always(None),
        "seed_all": _always(None),
        "initial_seed": _always(0),
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8) for _ in range(devices.count)],
        "set_rng_state": _always(None),
        "set_rng_state_all": _always(None),
        "default_generators": tuple(Generator(f"cuda:{ledger.device}") for ledger in devices.ledgers),
    }


def nvtx_answers() -> SimpleNamespace:
    """Ranges for a profiler that is not there."""
    names = ("markA", "rangePushA", "rangePop", "rangeStartA", "rangeEnd")
    return SimpleNamespace(**dict.fromkeys(names, _always(0)))


def low_level_answers(devices: Devices) -> dict[str, Any]:
    """The C names that libraries call directly."""
    return {
        "_cuda_setDevice": _set_device(devices),
        "_cuda_getDevice": current_device,
        "_cuda_exchangeDevice": devices.exchange,
        "_cuda_maybeExchangeDevice": devices.exchange,
        "_cuda_getDeviceCount": lambda: devices.count,
        "_get_accelerator": _always(torch.device("cuda")),
        "_accelerator_exchangeDevice": devices.exchange,
        "_accelerator_maybeExchangeDevice": devices.exchange,
        "_cuda_getCurrentRawStream": lambda device: devices.ledgers[device].stream,
        "_cuda_synchronize": _always(None),
        "_cuda_clearCublasWorkspaces": _always(None),
        "_cuda_isInBadFork": _always(False),
    }


def _parse_to(parse: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments of `Module.to`, where a number names a device of the card; a CPU build knows of none."""

    def parsed(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        device, *others = parse(*(for_python(for_cpp(each)) for each in args[:1]), *args[1:], **kwargs)
        return None if device is None else for_python(device), *others

    return parsed


def accelerator_answers(streams: CurrentStreams, devices: Devices) -> dict[str, Any]:
    """`torch.accelerator` names the same cards."""
    return {
        "is_available": lambda: devices.count > 0,
        "device_count": lambda: devices.count,
        "current_accelerator": _always(torch.device("cuda")),
        "current_device_index": current_device,
        "current_device_idx": current_device,
        "set_device_index": _set_device(devices),
        "set_device_idx": _set_device(devices),
        "synchronize": _always(None),
        "current_stream": streams.of,
        "set_stream": streams.set,
    }
