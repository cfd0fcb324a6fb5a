"""Where the host waits for a card, or one of its streams for another, the clocks come together; calls take time."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.answers.streams import Event, Stream
from peaksight.virtual_gpu.timing.stopwatch import Stopwatch
from peaksight.virtual_gpu.torch_private import checkpoint_hooks, selective_modes


def install(patches: Patches, stopwatch: Stopwatch) -> None:
    """Tell `stopwatch` of it until `patches` is left; torch.cuda's answers are in place."""
    _follow_modules(patches, stopwatch)
    _follow_streams(patches, stopwatch)
    _follow_events(patches, stopwatch)
    _follow_policies(patches, stopwatch)
    _follow_checkpoints(patches, stopwatch)
    synchronize = torch.cuda.synchronize

    def synchronized(device: Any = None) -> None:
        synchronize(device)
        stopwatch.synchronized()

    patches.set(torch.cuda, "synchronize", synchronized)


def _follow_modules(patches: Patches, stopwatch: Stopwatch) -> None:
    call = nn.Module.__call__

    def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        stopwatch.module_called()
        return call(module, *args, **kwargs)

    patches.set(nn.Module, "__call__", called)


def _follow_policies(patches: Patches, stopwatch: Stopwatch) -> None:
    for mode in selective_modes():
        patches.set(mode, "__torch_dispatch__", _asking(mode.__torch_dispatch__, stopwatch))


def _asking(dispatch: Callable[..., Any], stopwatch: Stopwatch) -> Callable[..., Any]:
    def asked(*args: Any, **kwargs: Any) -> Any:
        stopwatch.asked()
        return dispatch(*args, **kwargs)

    return asked


def _follow_checkpoints(patches: Patches, stopwatch: Stopwatch) -> None:
    for hooks in checkpoint_hooks():
        patches.set(hooks, "__init__", _beginning(hooks.__init__, stopwatch))


def _beginning(begin: Callable[..., Any], stopwatch: Stopwatch) -> Callable[..., Any]:
    def began(*args: Any, **kwargs: Any) -> None:
        stopwatch.region_begins()
        begin(*args, **kwargs)

    return began


def _follow_streams(patches: Patches, stopwatch: Stopwatch) -> None:
    clocks = stopwatch.clocks

    def wait_stream(stream: Stream, other: Stream) -> None:
        clocks.wait(_key(stream), clocks.of(_key(other)))

    patches.set(Stream, "wait_stream", wait_stream)
    patches.set(Stream, "wait_event", lambda stream, event: clocks.wait(_key(stream), _time_of(event)))
    patches.set(Stream, "synchronize", lambda stream: stopwatch.synchronized(clocks.of(_key(stream))))


def _follow_events(patches: Patches, stopwatch: Stopwatch) -> None:
    clocks = stopwatch.clocks

    def record(event: Event, stream: Any = None) -> None:
        event.seconds = clocks.of(_key(stream or torch.cuda.current_stream()))

    def wait(event: Event, stream: Any = None) -> None:
        clocks.wait(_key(stream or torch.cuda.current_stream()), event.seconds)

    patches.set(Event, "record", record)
    patches.set(Event, "wait", wait)
    patches.set(Event, "synchronize", lambda event: stopwatch.synchronized(event.seconds))


def _time_of(event: Any) -> float:
    return event.seconds if isinstance(event, Event) else 0.0


def _key(stream: Any) -> tuple[int, int]:
    return stream.device_index, stream.stream_id
