"""A card whose figures a test makes up, and a recorder of it."""

from peaksight.live.process import this_process
from peaksight.live.recorder import Recorder
from peaksight.live.statistics import Figures
from peaksight.records.watched import WatchedCard
from peaksight.units import GIB


def figures_of(allocated_bytes=0, *, device=0, **about):
    """What one card counted; its peaks are what is allocated unless `about` says otherwise."""
    facts = {
        "peak_allocated_bytes": allocated_bytes,
        "peak_reserved_bytes": allocated_bytes,
        "allocated_bytes": allocated_bytes,
        "reserved_bytes": allocated_bytes,
        "retries": 0,
        "ooms": 0,
    }
    return Figures(device=device, **(facts | about))


class MadeUpCard:
    """Gives what it was told to give, one list of figures a step, the last one for ever."""

    def __init__(self, *steps, free_bytes=8 * GIB):
        self.steps = list(steps)
        self.free = free_bytes

    def statistics(self):
        return self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]

    def free_bytes(self, device):
        return self.free

    def card(self, device):
        return WatchedCard(device=device, name="T4", total_bytes=16 * GIB, torch="2.14.1", settings="")


class Kept:
    """A sink that keeps what it is given."""

    name = "kept"

    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)

    def close(self):
        self.lines.append("closed")

    def of(self, kind):
        return [line for line in self.lines if isinstance(line, kind)]


def recorder_of(card, *sinks, said=None, **about):
    """A recorder of `card` that writes to `sinks`."""
    recorder = Recorder(this_process(("train.py",)), card, say=[].append if said is None else said.append, **about)
    recorder.sinks.extend(sinks)
    return recorder
