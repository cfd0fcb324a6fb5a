"""The endpoint for Prometheus, read as Prometheus reads it."""

from urllib.request import urlopen

import pytest

from peaksight.live.process import this_process
from peaksight.live.sinks.prometheus import PrometheusSink
from peaksight.records.watched import WatchedEvent, WatchedStep
from peaksight.units import GIB

parser = pytest.importorskip("prometheus_client.parser")


def test_the_endpoint():
    """The figures of the last step with rank and card, and how often what happened."""
    sink = PrometheusSink(0, this_process(()))
    for number in (1, 2):
        sink.write(WatchedStep(step=number, time=0.0, seconds=0.1, device=0, peak_allocated_bytes=number * GIB))
    sink.write(WatchedEvent(kind="retry", step=2, time=0.0, text=""))
    with urlopen(f"http://127.0.0.1:{sink.port}/metrics") as response:
        families = {family.name: family.samples for family in parser.text_string_to_metric_families(
            response.read().decode())}  # fmt: skip
    sink.close()

    (peak,), (step,) = families["peaksight_peak_allocated_bytes"], families["peaksight_step"]
    assert (peak.value, peak.labels) == (2 * GIB, {"rank": "0", "device": "0"})
    assert step.value == 2
    events = {sample.name: sample for sample in families["peaksight_events"]}
    assert events["peaksight_events_total"].labels == {"rank": "0", "kind": "retry"}
