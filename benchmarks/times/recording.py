"""Which operators the microbenchmarks are of, by the virtual card."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy.workloads import TORCH
from benchmarks.times.cases import CASES
from benchmarks.times.hosts import HOSTS, phases
from peaksight.gpus import Card, room_on
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.timing import roofline, stopwatch
from peaksight.virtual_gpu.timing.kinds import arithmetic_of, kind_of
from peaksight.virtual_gpu.timing.work import Work, work_of


@dataclass(frozen=True, slots=True)
class Operator:
    """One that ran on the virtual card, by what times it."""

    kind: str
    arithmetic: str
    work: Work


@dataclass(frozen=True, slots=True)
class Phase:
    """How often each of what the host does happened on the host, and the operators of each kind."""

    counts: dict[str, int]
    operators: list[Operator]


class Recorder(stopwatch.Stopwatch):
    """Notes what it would time."""

    def __init__(self, *args: Any) -> None:
        """From the first operator on."""
        super().__init__(*args)
        self.counts: dict[str, int] = defaultdict(int)
        self.operators: list[Operator] = []

    def ran(self, func: Any, args: tuple, kwargs: dict, out: Any, device: int | None, known: Any) -> None:
        """As a stopwatch does, but for the time."""
        self._is_running = True
        before = self.clocks.host
        super().ran(func, args, kwargs, out, device, known)
        if not stopwatch.launches(func) and self.clocks.host > before:
            self.counts["view"] += 1

    def _cost(self, func: Any, args: tuple, kwargs: dict, out: Any, known: Any) -> roofline.Cost:
        cost = super()._cost(func, args, kwargs, out, known)
        arithmetic = arithmetic_of(args, out)
        if cost.tf32_seconds is not None and stopwatch.allows_tf32(cost.kind):
            arithmetic = "tf32"
        work = work_of(func, args, kwargs, out)
        self.operators.append(Operator(kind_of(func, args, kwargs, out), arithmetic, work))
        return cost

    def _launch_seconds(self) -> float:
        name = self.launching()
        self.counts[name] += 1
        return super()._launch_seconds()

    def module_called(self) -> None:
        """Counted."""
        self.counts["module"] += 1

    def backward_begins(self) -> None:
        """Counted."""
        self.counts["pass"] += 1

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Counted by its parameters."""
        self.counts["optimizer"] += 1
        self.counts["parameter"] += sum(len(group["params"]) for group in optimizer.param_groups)


@contextmanager
def _recording(card: Card) -> Iterable[Recorder]:  # type: ignore[misc]
    gpu = VirtualGpu(room_on(card), rules_for(TORCH, card), max_steps=10**6, max_failures=0)
    gpu.stopwatch = Recorder(card, gpu.devices, gpu.loop)
    with gpu:
        yield gpu.stopwatch


def operators_of_cases(card: Card) -> dict[str, list[Operator]]:
    """What each case of cases.py runs."""
    found = {}
    with _recording(card) as recorder:
        for name, prepare in CASES.items():
            run = prepare()
            recorder.operators = []
            run()
            found[name] = list(recorder.operators)
    return found


def phases_of_hosts(card: Card) -> dict[str, dict[str, Phase]]:
    """What each phase of each model of hosts.py does."""
    found: dict[str, dict[str, Phase]] = {}
    for host in HOSTS:
        with _recording(card) as recorder:
            steps = phases(*host)
            for _ in range(2):  # the first makes the optimizer's state
                ran = {}
                for phase, run in steps.items():
                    recorder.counts, recorder.operators = defaultdict(int), []
                    run()
                    ran[phase] = Phase(dict(recorder.counts), recorder.operators)
            found[" ".join(map(str, host))] = ran
    return found
