"""Two clocks that run ahead of each other: the host's, which launches, and that of each stream of a card."""

from collections import defaultdict, deque

Stream = tuple[int, int]

# So many kernels of a stream are launched and not done at most: who launches more waits for the first of them. Measured
# on an H200 with CUDA 13.0, benchmarks/ranks/streams/queue-length.jsonl.
QUEUE_LENGTH = 1022


class Clocks:
    """Seconds since the begin; a stream is named by the index of its card and its number there."""

    def __init__(self) -> None:
        """All at zero."""
        self.host = 0.0
        self._streams: dict[Stream, float] = {}
        self._queues: defaultdict[Stream, deque[float]] = defaultdict(lambda: deque(maxlen=QUEUE_LENGTH))

    @property
    def now(self) -> float:
        """When all that was launched is done."""
        return max(self.host, *self._streams.values()) if self._streams else self.host

    def launch(self, stream: Stream, host_seconds: float, seconds: float, num_kernels: int = 1) -> None:
        """The host takes `host_seconds` to launch what then takes `seconds` on `stream`, once that gets to it."""
        self.host += host_seconds
        queue = self._queues[stream]
        if len(queue) + num_kernels > QUEUE_LENGTH:
            self.synchronize(queue[min(num_kernels, len(queue)) - 1])
        began = self._streams.get(stream, 0.0)
        self._streams[stream] = (began if began > self.host else self.host) + seconds
        queue.extend([self._streams[stream]] * num_kernels)

    def of(self, stream: Stream) -> float:
        """When all that was launched on `stream` is done."""
        return max(self.host, self._streams.get(stream, 0.0))

    def wait(self, stream: Stream, until: float) -> None:
        """What is launched on `stream` from here on begins at `until` at the earliest."""
        self._streams[stream] = max(self._streams.get(stream, 0.0), until)

    def synchronize(self, until: float) -> None:
        """The host waits for what is done at `until`."""
        self.host = max(self.host, until)
