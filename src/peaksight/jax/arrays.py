"""Arrays on the virtual card: shapes and types without numbers, with the methods of a `jax.Array`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax._src import core

from peaksight.jax.entries import Entry
from peaksight.jax.execution import device_bytes

if TYPE_CHECKING:
    from peaksight.jax.interception import VirtualTrace

# What the script gets for a number that nobody computed.
STAND_IN = 1


class VirtualArray(core.Tracer):
    """A `jax.Array` of the virtual card. `known` has its numbers where they follow from arguments alone.

    `whole` is the array whose memory it is in: of one card's part, that over all; of a copy for each card, the first.
    It is a tracer of the trace in which the script runs, so that every operation on it comes to that trace.
    """

    __slots__ = ("entry", "known", "placed", "was_donated", "whole")

    def __init__(self, trace: "VirtualTrace", aval: Any, entry: Entry | None, sharding: Any, known: Any = None) -> None:
        """An array of the shape and type `aval`, which holds `entry` until it is gone."""
        super().__init__(trace, core.update_aval_with_sharding(aval, sharding))
        self.entry = entry
        self.known = known
        self.placed = sharding
        self.was_donated = False
        self.whole: VirtualArray | None = None

    def __del__(self) -> None:
        """Give the memory back."""
        if getattr(self, "entry", None) is not None:
            self._trace.release(self)

    def donate(self) -> None:
        """The memory belongs to an output of the call that this was donated to, or is free."""
        self.entry, self.was_donated = None, True
        if self.whole is not None:
            self.whole.donate()

    @property
    def holder(self) -> "VirtualArray":
        """The array that has the memory this is in."""
        return self if self.whole is None else self.whole.holder

    # What a jax.Array answers.

    @property
    def sharding(self) -> Any:
        """Where it lies."""
        return self.placed or jax.sharding.SingleDeviceSharding(jax.devices()[0])

    @property
    def nbytes(self) -> int:
        """Of all its devices, as `jax.Array.nbytes`."""
        return device_bytes(self.aval, None)

    @property
    def itemsize(self) -> int:
        """The size of one number."""
        return int(self.aval.dtype.itemsize)

    @property
    def device(self) -> Any:
        """The one device, or the sharding over several."""
        devices = self.sharding.device_set
        return next(iter(devices)) if len(devices) == 1 else self.sharding

    committed = _committed = property(lambda self: self.placed is not None)
    is_fully_addressable = property(lambda self: True)
    is_fully_replicated = property(lambda self: self.sharding.is_fully_replicated)
    weak_type = property(lambda self: self.aval.weak_type)
    addressable_shards = property(lambda self: self._shards())
    global_shards = property(lambda self: self._shards())

    def _shards(self) -> list[Any]:
        return [_Shard(self, device, index) for index, device in enumerate(sorted_devices(self.sharding))]

    def part(self) -> "VirtualArray":
        """What one device holds of it, in the same memory; its numbers are not known."""
        aval = core.ShapedArray(self.placed.shard_shape(self.aval.shape), self.aval.dtype)
        return self.in_its_memory(aval, None)

    def in_its_memory(self, aval: Any, sharding: Any) -> "VirtualArray":
        """An array that lies like `sharding` and takes no memory of its own on the first card; its numbers are lost."""
        other = VirtualArray(self._trace, aval, None, sharding)
        other.whole = self
        return other

    def addressable_data(self, index: int) -> Any:
        """One device's part."""
        return self._shards()[index].data

    def devices(self) -> set[Any]:
        """Those it lies on."""
        return set(self.sharding.device_set)

    def block_until_ready(self) -> "VirtualArray":
        """There is nothing to wait for."""
        self.check()
        return self

    def copy_to_host_async(self) -> None:
        """There is nothing to copy."""

    def is_ready(self) -> bool:
        """It always is."""
        return True

    def is_deleted(self) -> bool:
        """Whether it was donated or deleted."""
        return self.was_donated

    def delete(self) -> None:
        """Free its memory."""
        self._trace.release(self)
        self.was_donated = True

    # Reading numbers.

    def numbers(self, kind: str) -> Any:
        """A NumPy array: what is known, else stand-ins of which all are one number; `kind` names who asks."""
        self.check()
        if self.known is not None:
            return np.asarray(self.known)
        self._trace.read(self, kind)
        dtype = (
            np.dtype(self.aval.dtype) if not jax.dtypes.issubdtype(self.aval.dtype, jax.dtypes.extended) else np.uint32
        )
        value = np.zeros((), dtype) if dtype == np.bool_ else np.asarray(STAND_IN).astype(dtype)
        return np.broadcast_to(value, self.aval.shape)

    @property
    def _value(self) -> Any:
        return self.numbers("array")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Its numbers, or stand-ins."""
        numbers = self.numbers("array")
        return numbers if dtype is None else numbers.astype(dtype)

    def _scalar(self, convert: Callable[[Any], Any]) -> Any:
        return convert(self.numbers(convert.__name__).reshape(-1)[0] if self.aval.size == 1 else self.numbers("array"))

    def __float__(self) -> float:
        """Its number, or the stand-in."""
        return self._scalar(float)

    def __int__(self) -> int:
        """Its number, or the stand-in."""
        return self._scalar(int)

    def __complex__(self) -> complex:
        """Its number, or the stand-in."""
        return self._scalar(complex)

    def __bool__(self) -> bool:
        """Its truth, or the stand-in."""
        return self._scalar(bool)

    def __index__(self) -> int:
        """Its number, or the stand-in."""
        return self._scalar(int)

    def item(self, *place: int) -> Any:
        """Its number, or the stand-in."""
        return self.numbers("item").item(*place)

    def tolist(self) -> Any:
        """Its numbers, or stand-ins."""
        return self.numbers("tolist").tolist()

    def __format__(self, spec: str) -> str:
        """As the number that it stands for."""
        return format(self.numbers("format")[()] if self.aval.ndim == 0 else repr(self), spec)

    def __repr__(self) -> str:
        """As JAX prints an array, numbers of large ones left out."""
        if self.aval.size > 16 or self.was_donated:
            return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype})"
        return f"Array({self.numbers('print').tolist()}, dtype={self.aval.dtype})"

    def __str__(self) -> str:
        """The number of a scalar."""
        return str(self.numbers("print")[()]) if self.aval.ndim == 0 else repr(self)

    def __reduce__(self) -> Any:
        """Pickled as its numbers: those that are known, else one and the shape, which takes no space."""
        if self.known is not None or not self.aval.size:
            return np.array, (self.numbers("pickle"),)
        return np.broadcast_to, (self.numbers("pickle").reshape(-1)[0], self.aval.shape)

    def __deepcopy__(self, memo: object) -> "VirtualArray":
        """Numbers do not change, so it is its own copy."""
        return self

    def __copy__(self) -> "VirtualArray":
        """Numbers do not change, so it is its own copy."""
        return self

    def check(self) -> None:
        """RuntimeError for an array whose memory was donated, as JAX raises it."""
        if self.was_donated:
            raise RuntimeError(f"Array has been deleted with shape={self.aval.str_short()}.")


def fetched(tree: Any) -> Any:
    """What `jax.device_get` gives of `tree`: NumPy arrays in place of those on the card."""
    return jax.tree.map(lambda leaf: leaf.numbers("device_get") if isinstance(leaf, VirtualArray) else leaf, tree)


class _Shard:
    """One device's part of an array."""

    def __init__(self, array: VirtualArray, device: Any, replica_id: int) -> None:
        self.device = device
        self.replica_id = replica_id if array.sharding.is_fully_replicated else 0
        self.data = array.part() if array.placed is not None else array
        self.index = array.sharding.devices_indices_map(array.aval.shape)[device]


def sorted_devices(sharding: Any) -> list[Any]:
    """The devices of `sharding` in order."""
    return sorted(sharding.device_set, key=lambda device: device.id)
