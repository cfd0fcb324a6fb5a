"""Streams and events of the virtual GPU: plain objects that know which stream allocates."""

from typing import Any

import torch

from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.tensors.devices import for_cpp, for_python


class Stream:
    """Stands in for torch.cuda.Stream; the allocator keeps a pool of free blocks for each `stream_id`."""

    _num_made = 0

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        """A new stream of `device`; `stream_id` in `kwargs` names an existing one."""
        if "stream_id" not in kwargs:
            Stream._num_made += 1
        self.stream_id = kwargs.get("stream_id", Stream._num_made)
        self.device = for_python(for_cpp("cuda" if device is None else device))
        self.device_index = self.device.index
        self.device_type = 1
        self.priority = priority
        self.cuda_stream = self.stream_id
        self._entered: list[Any] = []

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for: the simulation runs in program order."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> "Event":
        """An event that has happened."""
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """All work is done."""
        return True

    def is_capturing(self) -> bool:
        """No graph is captured."""
        return False

    def __enter__(self) -> "Stream":
        """`with stream:` is `with torch.cuda.stream(stream):`."""
        self._entered.append(torch.cuda.stream(self))  # type: ignore[arg-type]
        self._entered[-1].__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Those before are current again."""
        self._entered.pop().__exit__(*exc_info)

    def __eq__(self, other: object) -> bool:
        """The same stream of the same device."""
        return isinstance(other, Stream) and (self.stream_id, self.device) == (other.stream_id, other.device)

    def __hash__(self) -> int:
        """By stream and device."""
        return hash((self.stream_id, self.device))


class Event:
    """Stands in for torch.cuda.Event; it has always happened, and no time passes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Any arguments of torch.cuda.Event; `seconds` is when it happens, for those who predict times."""
        self.seconds = 0.0

    def record(self, stream: Any = None) -> None:
        """Happens at once."""

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """It has happened."""
        return True

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds between two events: a simulation has no device time, so one stands in for all."""
        return 1.0


class CurrentStreams:
    """Which stream of each card allocates, and `torch.cuda.stream` to change it."""

    def __init__(self, devices: Devices) -> None:
        """Blocks of each of `devices` belong to its current stream."""
        self._devices = devices
        self._default = [Stream(ledger.device, stream_id=0) for ledger in devices.ledgers]
        self._current = list(self._default)

    def of(self, device: Any = None) -> Stream:
        """The current stream of `device`, by default of the current one."""
        return self._current[self._devices.index_of(device)]

    def default_of(self, device: Any = None) -> Stream:
        """The stream that `device` begins with."""
        return self._default[self._devices.index_of(device)]

    def set(self, stream: Stream | None) -> None:
        """Make `stream` current, and its device; None changes nothing, as in torch."""
        if stream is not None:
            self._devices.exchange(stream.device)
            self._current[stream.device_index] = stream
            self._devices.ledgers[stream.device_index].stream = stream.stream_id

    def context(self, stream: Stream | None) -> "StreamContext":
        """`with torch.cuda.stream(stream):`."""
        return StreamContext(self, stream)


class StreamContext:
    """`stream` is current inside."""

    def __init__(self, current: CurrentStreams, stream: Stream | None) -> None:
        """Of `current`."""
        self._current, self._stream = current, stream

    def __enter__(self) -> Stream | None:
        """Make it current."""
        if self._stream is not None:
            self._before = self._current.of(), self._current.of(self._stream.device)
            self._current.set(self._stream)
        return self._stream

    def __exit__(self, *exc_info: object) -> None:
        """Make those before current again, on its device and on the one that was current."""
        if self._stream is not None:
            here, there = self._before
            self._current.set(there)
            self._current.set(here)


def stream_answers(current: CurrentStreams) -> dict[str, Any]:
    """What torch.cuda answers about streams."""
    return {
        "Stream": Stream,
        "Event": Event,
        "ExternalStream": Stream,
        "current_stream": current.of,
        "default_stream": current.default_of,
        "set_stream": current.set,
        "stream": current.context,
        "StreamContext": current.context,
    }


def generic_answers() -> dict[str, Any]:
    """The device-independent names, `torch.Stream` and `torch.Event`."""
    return {"Stream": Stream, "Event": Event} if hasattr(torch, "Stream") else {}
