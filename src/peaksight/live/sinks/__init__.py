"""Where the records of a watched run go: each place in a file of its own."""

from typing import Protocol

from peaksight.records.watched import Line, WatchedStep


class Sink(Protocol):
    """Takes records; `name` is what messages call it. What it raises drops it and never reaches the script."""

    name: str

    def write(self, line: Line) -> None:
        """Take one record."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


def figures_of(step: WatchedStep) -> dict[str, float]:
    """What dashboards show of a step, by name: bytes, counts and seconds; nothing that is not known."""
    known = {
        "peak_allocated_bytes": step.peak_allocated_bytes,
        "peak_reserved_bytes": step.peak_reserved_bytes,
        "allocated_bytes": step.allocated_bytes,
        "reserved_bytes": step.reserved_bytes,
        "retries": step.retries,
        "ooms": step.ooms,
        "seconds": step.seconds,
        "free_bytes": step.free_bytes,
        "host_bytes": step.host_bytes,
        "predicted_allocated_bytes": step.predicted_allocated_bytes,
        "predicted_reserved_bytes": step.predicted_reserved_bytes,
    }
    return {name: value for name, value in known.items() if value is not None}


def tag_of(name: str, device: int | None) -> str:
    """What dashboards that know no labels call a figure of a card."""
    return f"peaksight/{name}" if device is None else f"peaksight/card{device}/{name}"
