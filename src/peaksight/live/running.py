"""Where Python is when memory runs out: the stacks, the modules that are running, and whose tensor lies where."""

import gc
import inspect
import sys
import threading
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from peaksight.records import Role
from peaksight.records.capsule import StackFrame, TensorName

_PACKAGE = str(Path(__file__).parents[1])
_MOST_FRAMES = 200
_MOST_NAMES = 50_000
_CALL = "_call_impl"


def frame_of_failure() -> FrameType | None:
    """The innermost frame of this thread that is not ours."""
    return _outside(sys._getframe())


def frame_of_main() -> FrameType | None:
    """Where the main thread is while another one fails, as of a backward pass; None in the main thread."""
    main = threading.main_thread()
    if threading.current_thread() is main:
        return None
    return sys._current_frames().get(main.ident or 0)


def stack_of(frame: FrameType | None) -> tuple[StackFrame, ...]:
    """From `frame` outwards, without ours."""
    kept = (each for each in _outwards(frame) if not each.f_code.co_filename.startswith(_PACKAGE))
    return tuple(
        StackFrame(filename=each.f_code.co_filename, line=each.f_lineno, name=each.f_code.co_name)
        for each in islice(kept, _MOST_FRAMES)
    )


def modules_running(frame: FrameType | None) -> tuple[str, ...]:
    """The modules that `frame` runs in, outermost first, each by its path in the outermost."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ()
    found = [module for each in _outwards(frame) if (module := _module_of(each, torch.nn.Module)) is not None]
    found.reverse()
    if not found:
        return ()
    names = {id(module): name for name, module in _modules_below(found[0], type(found[0]).__name__)}
    return tuple(dict.fromkeys(names.get(id(module), type(module).__name__) for module in found))


def names_of_tensors() -> tuple[TensorName, ...]:
    """The parameters, buffers, gradients and optimizer states of everything alive, by the address of their storage."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    modules, optimizers = _alive(torch.nn.Module), _alive(torch.optim.Optimizer)
    paths: dict[int, str] = {}
    found: dict[int, TensorName] = {}
    for root in _roots(modules):
        for path, module in _modules_below(root, type(root).__name__):
            for role, tensor in _tensors(module):
                paths.setdefault(id(tensor), path)
                _add(found, tensor, role, path)
                if role == Role.PARAMETER:
                    _add(found, tensor.grad, Role.GRADIENT, path)
    for optimizer in optimizers:
        for parameter, state in list(optimizer.state.items()):
            for tensor in state.values() if isinstance(state, Mapping) else ():
                _add(found, tensor, Role.OPTIMIZER_STATE, paths.get(id(parameter), ""))
    return tuple(islice(found.values(), _MOST_NAMES))


def _add(found: dict[int, TensorName], tensor: Any, role: Role, path: str) -> None:
    address = _address(tensor)
    if address:
        found.setdefault(address, TensorName(address=address, role=role, module=path))


def _address(tensor: Any) -> int:
    """Where the storage of `tensor`, or of the part of it that this rank has, begins on the card; 0 for none there."""
    tensor = getattr(tensor, "_local_tensor", tensor)
    try:
        return tensor.untyped_storage().data_ptr() if tensor.is_cuda else 0
    except (AttributeError, RuntimeError, NotImplementedError):
        return 0


def _tensors(module: Any) -> Iterator[tuple[Role, Any]]:
    for role, held in ((Role.PARAMETER, module._parameters), (Role.BUFFER, module._buffers)):
        yield from ((role, tensor) for tensor in list(held.values()) if tensor is not None)


def _alive(kind: type) -> list[Any]:
    """The instances of `kind`; their class is asked, for some objects answer for another one."""
    return [each for each in gc.get_objects() if issubclass(type(each), kind)]


def _roots(modules: list[Any]) -> list[Any]:
    """Those that are part of no other, as far as they are whole."""
    whole = [module for module in modules if "_modules" in vars(module) and "_parameters" in vars(module)]
    inner = {id(child) for module in whole for child in module._modules.values()}
    return [module for module in whole if id(module) not in inner]


def _modules_below(root: Any, name: str) -> Iterator[tuple[str, Any]]:
    """`root` and all modules in it, once each, with their paths."""
    seen, waiting = set(), [(name, root)]
    while waiting:
        path, module = waiting.pop()
        if module is None or id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        waiting += [(f"{path}.{name}", child) for name, child in reversed(list(module._modules.items()))]


def _module_of(frame: FrameType, kind: type) -> Any:
    """The module whose call `frame` is."""
    if frame.f_code.co_name != _CALL:
        return None
    module = _variables(frame).get("self")
    return module if issubclass(type(module), kind) and "_modules" in vars(module) else None


def _variables(frame: FrameType) -> dict[str, Any]:
    """The local variables; the dictionary that Python keeps in the frame is emptied, else it would keep tensors."""
    seen = frame.f_locals
    names = dict(seen)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(seen, dict):  # from 3.13 on a view, keeping nothing
        seen.clear()
    return names


def _outside(frame: FrameType | None) -> FrameType | None:
    return next((f for f in _outwards(frame) if not f.f_code.co_filename.startswith(_PACKAGE)), None)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
