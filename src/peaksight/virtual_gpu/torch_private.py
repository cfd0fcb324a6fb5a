"""The private names of torch that the virtual GPU stands on, in one place; `torch_release` probes them before a run."""

import copyreg
import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch._guards as guards
import torch._subclasses as subclasses
import torch._subclasses.fake_tensor as fake_tensor
import torch._utils as rebuilding
import torch.optim.optimizer as optimizer_module
import torch.serialization as serialization
import torch.utils._device as device_module
import torch.utils._foreach_utils as foreach_utils
import torch.utils.checkpoint as checkpointing
from torch._C import DispatchKey, DispatchKeySet
from torch._library.simple_registry import find_torch_dispatch_rule, singleton
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _len_torch_function_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import _disable_current_modes

__all__ = [
    "ATTRIBUTES",
    "CHECKPOINT_GENERATOR",
    "DISPATCH_FILES",
    "ENGINE",
    "SNAPSHOTS_HAVE_HOST_MEMORY",
    "BypassDispatchCache",
    "CachedResult",
    "DeviceMismatch",
    "FakeTensor",
    "FakeTensorMode",
    "autocast_excluded",
    "autocast_for_all",
    "called_by_engine",
    "checkpoint_hooks",
    "checkpointing",
    "current_autograd_node",
    "default_device",
    "dispatch_rule",
    "fake_device_of",
    "fake_tensor",
    "find_torch_dispatch_rule",
    "finished_work",
    "foreach_utils",
    "function_mode_stack",
    "function_modes",
    "function_modes_off",
    "guards",
    "is_last_reference",
    "layout_of",
    "made_number",
    "modes_in_thread",
    "modes_off",
    "next_sequence_nr",
    "no_dispatch",
    "optimizer_module",
    "rebuilding",
    "renumber",
    "resolve_group",
    "selective_modes",
    "serialization",
    "storage_device",
    "subclasses",
    "swap",
    "world",
]

# The files of torch whose frames lie between an operator's caller and a dispatch mode.
DISPATCH_FILES = frozenset(
    str(Path(torch.__file__).parent / name)
    for name in ("_subclasses/fake_tensor.py", "utils/_stats.py", "_compile.py", "_dynamo/eval_frame.py")
)
# torch 2.14 keeps a history of pinned memory too, and has keys for it in its snapshots.
SNAPSHOTS_HAVE_HOST_MEMORY = (
    "record_pinned_host_memory" in inspect.signature(torch.cuda.memory._record_memory_history).parameters
)
# What all checkpointing without reentrant backward passes calls: torch 2.14 has it behind the name of before.
CHECKPOINT_GENERATOR = "_checkpoint_without_reentrant_generator"
if hasattr(checkpointing, f"{CHECKPOINT_GENERATOR}_impl"):
    CHECKPOINT_GENERATOR += "_impl"
BypassDispatchCache = fake_tensor._BypassDispatchCache
CachedResult = fake_tensor._DispatchCacheValidEntry
DeviceMismatch = fake_tensor.FakeTensorDeviceMismatchError
# `FakeTensor.fake_device` and `torch.Tensor.layout` without a call in Python for each: every operator asks for both of
# each tensor. torch 2.14 answers for the layout of what is `is_mkldnn` in Python, which no tensor of a card is.
fake_device_of = attrgetter("_fake_device")
layout_of = vars(torch._C.TensorBase)["layout"].__get__
current_autograd_node = torch._C._current_autograd_node
function_mode_stack = _get_current_function_mode_stack
next_sequence_nr = torch._C._autograd._get_sequence_nr
_MADE_AS = "peaksight: made as"


def made_number(node: Any) -> int:
    """The sequence number that `node` of autograd was made with, also after `renumber`."""
    number = node._sequence_nr()
    return node.metadata.get(_MADE_AS, number) if number in _renumbered else number


# The numbers that were given: only nodes with one of them are asked for the number that they were made with.
_renumbered: set[int] = set()


def renumber(node: Any, number: int) -> None:
    """Give `node` another sequence number, which tells the engine when to run it."""
    node.metadata.setdefault(_MADE_AS, node._sequence_nr())
    _renumbered.add(number)
    node._set_sequence_nr(number)


def dispatch_rule(op: Any, torch_dispatch_class: type) -> Any:
    """What `find_torch_dispatch_rule` returns, in one call instead of three.

    C++ asks it at every dispatch, also of a question for a device, and keeps the function: only its code can be
    exchanged, for this one's, which then has the globals of torch and in them the same `singleton`.
    """
    entry = singleton._data.get(op.__qualname__)
    return None if entry is None else entry.torch_dispatch_rules._data.get(torch_dispatch_class)


def selective_modes() -> tuple[Any, Any]:
    """The modes that ask a policy of selective checkpointing, in a forward and where it runs again."""
    return checkpointing._CachingTorchDispatchMode, checkpointing._CachedTorchDispatchMode


def checkpoint_hooks() -> tuple[Any, Any]:
    """What takes the tensors that autograd saves in a checkpoint, in a forward and where it runs again."""
    return checkpointing._checkpoint_hook, checkpointing._recomputation_hook


def storage_device(storage: Any) -> torch.device:
    """The device of a storage for C++: `UntypedStorage.device` answers for the card."""
    return torch._C.StorageBase.__dict__["device"].__get__(storage)


def autocast_excluded() -> torch._C._ExcludeDispatchKeyGuard:
    """A context in which the autocast kernels of CUDA are skipped."""
    return torch._C._ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.AutocastCUDA))


def autocast_for_all() -> Any:
    """A context in which those kernels are also asked for tensors without that key, such as DTensors."""
    return torch._C._IncludeDispatchKeyGuard(DispatchKey.AutocastCUDA)


def modes_off() -> AbstractContextManager[Any]:
    """A context with no dispatch mode: operations on real tensors run as if there were no virtual GPU."""
    return _disable_current_modes()


@contextmanager
def modes_in_thread(mode: FakeTensorMode, function_mode: TorchFunctionMode) -> Iterator[None]:
    """Around all that a new thread does: both modes, as entering them does it in the first thread.

    A thread must not end in a mode: C++ frees what is left once the thread is over for Python, takes the interpreter's
    lock to do so, and aborts the process where that is about to end.
    """
    torch._C._set_only_lift_cpu_tensors(True)
    torch._C._set_dispatch_mode(mode)
    _push_mode(function_mode)
    try:
        yield
    finally:
        _pop_modes()
        torch._C._unset_dispatch_mode(mode._mode_key)


class function_modes:
    """A context with the function modes `modes` and no others."""

    def __init__(self, modes: Sequence[TorchFunctionMode]) -> None:
        """`modes` begin with the outermost."""
        self._inside = modes

    def __enter__(self) -> None:
        """Take every function mode off the stack, and put those on."""
        self._modes = _pop_modes()
        _push_modes(self._inside)

    def __exit__(self, *exc_info: object) -> None:
        """Put them back in order."""
        _pop_modes()
        _push_modes(self._modes)


class function_modes_off(function_modes):
    """A context with no function mode."""

    def __init__(self) -> None:
        """None at all."""
        super().__init__(())


def _pop_modes() -> list[TorchFunctionMode]:
    return [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]


def _push_modes(modes: Sequence[TorchFunctionMode]) -> None:
    for mode in modes:
        _push_mode(mode)


def world() -> Any:
    """What torch.distributed knows of the groups of this process."""
    return torch.distributed.distributed_c10d._world


def resolve_group(name: Any) -> Any:
    """The process group that functional collectives know by `name`."""
    return torch.distributed.distributed_c10d._resolve_process_group(name)


def finished_work(result: object) -> "torch.distributed.Work":
    """The handle of a collective that is done, with `result` in its future."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


def default_device() -> torch.device | None:
    """The device of `with torch.device(...)` or `torch.set_default_device`, None without one."""
    return device_module.CURRENT_DEVICE


# The attributes of a tensor, also where its class says something else of them.
ATTRIBUTES: Any = vars(torch.Tensor)["__dict__"]


def swap(first: torch.Tensor, second: torch.Tensor) -> None:
    """What `torch.utils.swap_tensors` does, but for its checks: of two tensors of one class."""
    mine, theirs = ATTRIBUTES.__get__(first), ATTRIBUTES.__get__(second)
    ATTRIBUTES.__set__(first, theirs)
    ATTRIBUTES.__set__(second, mine)
    for name in copyreg._slotnames(type(first)):  # type: ignore[attr-defined]
        mine, theirs = getattr(first, name), getattr(second, name)
        setattr(first, name, theirs)
        setattr(second, name, mine)
    torch._C._swap_tensor_impl(first, second)


# How often the first of an operator's `args` is counted when only the caller in C++ holds it: the tensor, its storage,
# and its Python object, as `is_last_reference` sees them.
LAST_REFERENCE = (4, 2, 4)
ENGINE = torch.autograd.graph._engine_run_backward


def is_last_reference(args: tuple[Any, ...]) -> bool:
    """Whether nothing but the caller of the operator that runs now holds its first argument, or a view of it."""
    tensor = args[0]
    counts = tensor._use_count(), torch._C._storage_Use_Count(tensor.untyped_storage()._cdata), sys.getrefcount(tensor)
    return all(count <= last for count, last in zip(counts, LAST_REFERENCE, strict=True))


def called_by_engine(dispatching: frozenset[str]) -> bool:
    """Whether C++ called the operator that runs now in a backward pass: only code of the files `dispatching` since.

    Files are told by their globals: a look at `f_code` calls the audit hook.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__file__") in dispatching:
        frame = frame.f_back
    return frame is not None and frame.f_globals is ENGINE.__globals__ and frame.f_code is ENGINE.__code__
