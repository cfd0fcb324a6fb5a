"""The virtual GPU's dispatch mode: device tensors are fake, everything else on the CPU is real."""

from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_map

from peaksight.errors import UnsupportedError
from peaksight.overlays.seeds import has_set_a_seed
from peaksight.virtual_gpu.kernels.torch_private import lacks_fake_kernel
from peaksight.virtual_gpu.memory.at_the_limit import let_go
from peaksight.virtual_gpu.tensors import elements, known, values
from peaksight.virtual_gpu.tensors.cache_key import cache_key
from peaksight.virtual_gpu.tensors.cached_results import UNKNOWN, CachedResults
from peaksight.virtual_gpu.tensors.calls import (
    any_real,
    concerns_the_card,
    is_real,
)
from peaksight.virtual_gpu.tensors.devices import PRIM_DEVICE, cpp_device, for_python
from peaksight.virtual_gpu.tensors.drawing import MEDIAN, draws, is_lone
from peaksight.virtual_gpu.tensors.in_place import in_place_of
from peaksight.virtual_gpu.tensors.mapped import copy_of_stand_ins
from peaksight.virtual_gpu.tensors.observer import Observer
from peaksight.virtual_gpu.tensors.operators import Operators, ShapeRule
from peaksight.virtual_gpu.tensors.results import unknown_layout
from peaksight.virtual_gpu.tensors.skipped_draws import SkippedDraws
from peaksight.virtual_gpu.tensors.subclasses import of_libraries, plain
from peaksight.virtual_gpu.threads import TURN
from peaksight.virtual_gpu.torch_private import (
    DeviceMismatch,
    FakeTensor,
    FakeTensorMode,
    no_dispatch,
)

aten = torch.ops.aten
# The same to a fake tensor, but FakeTensorMode's cache does not take the first.
UNSAFE_VIEW, VIEW = aten._unsafe_view.default, aten.view.default
ITEM = aten._local_scalar_dense.default
TO, TO_COPY = aten.to.device, aten._to_copy.default
TO_DEVICE = ("device", "dtype", "non_blocking", "copy", "memory_format")


class VirtualGpuMode(FakeTensorMode):
    """FakeTensorMode for one script: it fakes what touches the card and lets the rest run."""

    avoid_device_init = property(lambda self: True)  # never touch a CUDA driver

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled: a wrapper's frame would keep the arguments of an operator that failed alive."""
        return False

    def __init__(self, observer: Observer, operators: Operators) -> None:
        """Report to `observer`; `operators` says what the card runs for each."""
        super().__init__(allow_non_fake_inputs=True)
        self._cached = CachedResults(self)
        self._observer = observer
        self._operator = operators.of
        self._first_thread = get_ident()
        self._nested = False
        self._draws = SkippedDraws()
        values.DRAWS.restart()
        self._has_lost_draws = False
        self.moving_modules = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator; one for which the card has no memory leaves nothing behind."""
        try:
            with TURN:
                if func is PRIM_DEVICE:  # what C++ asks most, several times for each operator
                    return cpp_device(args[0])
                if not of_libraries(types):
                    return self.dispatch(func, types, args, kwargs)
                with plain((args, kwargs)):
                    return self.dispatch(func, types, args, kwargs)
        except Exception as error:
            let_go(error)
            raise

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operator: really when it stays on the host, fake when it concerns the card."""
        with torch._C.DisableTorchFunction():  # below here nobody asks for "cuda"
            kwargs = dict(kwargs) if kwargs else {}
            if func is TO:  # which asks for a device by position, where autograd does not take it apart
                args, kwargs = args[:1], dict(zip(TO_DEVICE, args[1:], strict=False)) | kwargs
            if "device" in kwargs:
                kwargs["device"] = self._own(for_python(kwargs["device"]))
            if self._nested:
                return super().dispatch(func, types, *self._all_faked(args, kwargs))
            if concerns_the_card(func, types, args, kwargs):
                return self._on_card(func, types, args, kwargs)
            if self._has_lost_draws and draws(func):
                self._observer.made_up("draw")
            if is_lone(func, args, kwargs) and not has_set_a_seed():
                self._observer.made_up("median")
                return func(*args, **kwargs).fill_(MEDIAN)
            copied = copy_of_stand_ins(func, args, kwargs)
            return func(*args, **kwargs) if copied is None else copied

    def _own(self, device: Any) -> Any:
        """`device`, which is on this machine: a first card always is."""
        if isinstance(device, torch.device) and device.type == "cuda" and device.index:
            self._observer.lacks(device)
        return device

    def _on_card(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if func is ITEM:
            self._observer.leaves(args[0])
            self.decides(args[0], "value")
            # One of the host depends on weights, and so may how often they are drawn.
            self._has_lost_draws |= args[0].fake_device.type == "cpu" and known.known_value(args[0]) is None
            return values.read_scalar(args[0])
        operator = self._operator(func)
        if operator.may_be_in_place:
            func = in_place_of(func, args, kwargs)
            operator = self._operator(func)
        rules = operator.rules_for(args) if operator.on_sparse is not None else operator.on_dense
        if rules.steps is not None:
            with self:
                out = rules.steps(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if func is TO_COPY and self._leaves_the_card(args, kwargs):
            if values.decides_on_host(args[0]):
                self.decides(args[0], "value")
            self._observer.leaves(args[0])
            return values.host_copy(args[0], kwargs.get("dtype"))
        if get_ident() != self._first_thread:
            self._observer.made_up("thread")
        asked = dict(kwargs) if operator.draws else kwargs
        out = self._run_fake(func, types, args, kwargs, rules.shape)
        if out is NotImplemented:
            return out
        if operator.draws and isinstance(out, FakeTensor) and out.fake_device.type == "cpu":
            self._has_lost_draws |= not self._draws.pass_by(func, args, asked, out)
        self._observer.after(func, args, kwargs, out, self._cached.known)
        if operator.is_overload:
            elements.follow(func, args, kwargs, out)
            if operator.writes_first and args and type(args[0]) is torch.Tensor:  # of the host
                return args[0]
        return out

    def _cache_key(self, state: Any, func: Any, args: Any, kwargs: Any) -> Any:
        return cache_key(func, args, kwargs)

    def fake(self, real: torch.Tensor) -> FakeTensor:
        """A fake tensor like `real`, which stays as it is."""
        with no_dispatch():
            meta = torch.empty_strided(real.shape, real.stride(), dtype=real.dtype, device="meta")
        return FakeTensor(self, meta, real.device)

    def _all_faked(self, args: Any, kwargs: dict[str, Any]) -> Any:
        if not (any_real(args) or any_real(kwargs.values())):
            return args, kwargs
        return tree_map(lambda leaf: self.fake(leaf) if is_real(leaf) else leaf, (args, kwargs))

    def _run_fake(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any], shape_rule: ShapeRule | None) -> Any:
        if "generator" in kwargs:
            kwargs["generator"] = None
        if shape_rule is None:
            return self._run_fake_kernel(func, types, args, kwargs)
        self._nested = True
        try:
            return shape_rule(self, lambda a, k: self._run_fake_kernel(func, types, a, k), args, kwargs)
        finally:
            self._nested = False
            self._cached.known = None

    def _run_fake_kernel(self, func: Any, types: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if func is UNSAFE_VIEW:
            func = VIEW
        out = self._cached.result(func, args, kwargs)
        if out is not UNKNOWN:
            return out
        was_nested, self._nested = self._nested, True
        try:
            return super().dispatch(func, types, *self._all_faked(args, kwargs))
        except Exception as error:
            if lacks_fake_kernel(error):
                raise (unknown_layout(args, kwargs) or _without_fake_kernel(func)) from error
            if isinstance(error, DeviceMismatch):
                raise RuntimeError(str(error)) from None
            raise
        finally:
            self._nested = was_nested

    def made_up_value(self) -> None:
        """A rule answered with a stand-in."""
        self._observer.made_up("value")

    def made_up_shape(self) -> None:
        """A shape rule used an upper bound."""
        self._observer.made_up("shape")

    def decides(self, tensor: torch.Tensor, what: str = "shape") -> None:
        """A `shape` or a `value` comes from the elements of `tensor`: noted where those of the card would be others."""
        if known.known_value(tensor) is None:
            self._observer.made_up(what)
        elif known.is_by_chance(tensor):
            self._observer.made_up("chance")

    def _leaves_the_card(self, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether `_to_copy` takes anything but a module's own tensors and those of weights in the making."""
        device = kwargs.get("device")
        return (
            device is not None
            and device.type == "cpu"
            and not self.moving_modules
            and isinstance(args[0], FakeTensor)
            and args[0].fake_device.type != "cpu"
            and not isinstance(args[0], nn.Parameter)
        )


def _without_fake_kernel(func: Any) -> UnsupportedError:
    return UnsupportedError(
        f"Can't simulate {func.name()}: it has no fake kernel, which tells the shapes of its results without a GPU. "
        "Register one with torch.library.register_fake, or use another operator.",
        slug="no-fake-kernel",
    )
