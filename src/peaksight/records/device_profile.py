"""What was alive on the devices of a JAX process: the report of a device memory profile."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileHolder:
    """Arrays or programs that one line made. `source` is `train.py:20`, of the user's code where its stack shows any.

    `stack` are the calls from there inwards, `f at file.py:3`. `kind` is `buffer` or `executable`, as JAX has it.
    """

    bytes: int
    count: int
    kind: str
    device: str
    source: str
    stack: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTotal:
    """The bytes of one kind on one device."""

    device: str
    kind: str
    bytes: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """One file of `jax.profiler.save_device_memory_profile`; the holders with most bytes come first."""

    schema: str
    source: str
    live_bytes: int
    totals: tuple[DeviceTotal, ...]
    holders: tuple[ProfileHolder, ...]
