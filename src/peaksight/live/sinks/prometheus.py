"""Prometheus: gauges of the last step, at a port of this rank."""

from typing import Any

from peaksight.live.sinks import figures_of
from peaksight.records.watched import Line, WatchedEvent, WatchedProcess, WatchedStep


class PrometheusSink:
    """Serves gauges and counters with the labels `rank` and `device`; the step is a gauge beside them."""

    def __init__(self, port: int, process: WatchedProcess) -> None:
        """Listen at `port` plus the local rank, with a registry of our own: the script may have its own.

        Raises:
            OSError: the port is taken.
        """
        import prometheus_client

        self._client = prometheus_client
        self._registry = prometheus_client.CollectorRegistry()
        self._gauges: dict[str, Any] = {}
        self._labels = {"rank": str(process.rank)}
        self._events = prometheus_client.Counter(
            "peaksight_events", "Events of the run.", ["rank", "kind"], registry=self._registry
        )
        self._server, self._thread = prometheus_client.start_http_server(
            port + process.local_rank, registry=self._registry
        )
        self.port = self._server.server_port
        self.name = f"Prometheus at port {self.port}"

    def write(self, line: Line) -> None:
        """Show `line`."""
        if isinstance(line, WatchedStep):
            labels = {**self._labels, "device": "" if line.device is None else str(line.device)}
            self._gauge("step").labels(**labels).set(line.step)
            for name, value in figures_of(line).items():
                self._gauge(name).labels(**labels).set(value)
        elif isinstance(line, WatchedEvent):
            self._events.labels(kind=line.kind, **self._labels).inc()

    def close(self) -> None:
        """Leave the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _gauge(self, name: str) -> Any:
        if name not in self._gauges:
            text = f"{name.replace('_', ' ').capitalize()} of the last step."
            self._gauges[name] = self._client.Gauge(
                f"peaksight_{name}", text, ["rank", "device"], registry=self._registry
            )
        return self._gauges[name]
