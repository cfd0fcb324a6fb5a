"""The page docs/peers.md, which is also what the command prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from statistics import median

from benchmarks.accuracy.predictions import Prediction
from benchmarks.accuracy.workloads import TORCH, Workload, workloads
from benchmarks.peers.answers import Answer
from benchmarks.peers.tools import PEERS, Peer
from benchmarks.tables import table
from peaksight.units import GIB

INTRODUCTION = """\
# Beside the peers

Written by `make peers`: {num_asked} of the {num_workloads} workloads of benchmarks/truth, predicted by peaksight and by
four other tools in the same run, without a GPU, and compared with what one did.

- Measured: {device}, torch {measured_torch}.
- Predicted on {today}: torch {torch}, peaksight with `--torch {rules}`, {versions}.
- Each tool is used as its own documentation says, in a process of its own for each workload. An error is
  (predicted - measured) / measured.
- peaksight takes the script. The others want a model and a batch in hand, which are taken from the script where it
  first calls its model, as fake tensors. *CPU seconds* are medians of answers, imports included.
- The time that an answer may take is that of the processor: what else the machine does decides none."""

OURS = ("peaksight, allocated", "peaksight, reserved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Our prediction of a workload, and the `answers` of peers by module."""

    prediction: Prediction
    answers: Mapping[str, Answer]


Pairs = Mapping[str, tuple[int, int] | None]
"""Measured and predicted bytes by workload; None where a tool gave no number."""


@dataclass(frozen=True, slots=True)
class Results:
    """Those of all workloads, in the order of the manifest."""

    everything: Sequence[Result]

    @property
    def points(self) -> dict[str, list[tuple[int, int]]]:
        """Pairs of measured and predicted bytes by tool, ours last so that they are drawn above."""
        pairs = {**{peer.name: self.of(peer) for peer in PEERS}, **self.ours}
        return {name: [pair for pair in of.values() if pair] for name, of in pairs.items()}

    @property
    def ours(self) -> dict[str, Pairs]:
        """Both of our figures."""
        predictions = [result.prediction for result in self.everything]
        return {
            OURS[0]: {p.workload.name: _pair(p, "peak_allocated") for p in predictions},
            OURS[1]: {p.workload.name: _pair(p, "peak_reserved") for p in predictions},
        }

    def of(self, peer: Peer) -> Pairs:
        """What a peer answered, beside its measured counterpart."""
        return {
            result.prediction.workload.name: (result.prediction.workload.measured[peer.measured], predicted)
            if predicted
            else None
            for result in self.everything
            for predicted in [result.answers[peer.module].predicted_bytes]
        }

    @property
    def workloads(self) -> list[Workload]:
        """All that were asked about."""
        return [result.prediction.workload for result in self.everything]


def _pair(prediction: Prediction, measured: str) -> tuple[int, int] | None:
    if prediction.report is None:
        return None
    peak = prediction.report.peak
    return prediction.workload.measured[measured], {
        "peak_allocated": peak.allocated_bytes,
        "peak_reserved": peak.reserved_bytes,
    }[measured]


def render_page(results: Results, versions: Mapping[str, str]) -> str:
    """Everything about `results`, as Markdown."""
    uses = "\n".join(f"- **{peer.name}**: {peer.use}" for peer in PEERS)
    picture = "![Predicted against measured memory, tool by tool](peers.svg)"
    parts = [_introduction(results, versions), _summary(results), picture, uses, _errors(results), _reasons(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _introduction(results: Results, versions: Mapping[str, str]) -> str:
    measured = results.workloads[0].measured
    return INTRODUCTION.format(
        device=measured["device"],
        measured_torch=measured["torch"],
        today=date.today(),
        torch=version("torch"),
        num_asked=len(results.workloads),
        num_workloads=len(workloads()),
        rules=TORCH,
        versions=", ".join(f"{name} {number}" for name, number in versions.items() if name != "torch"),
    )


def _summary(results: Results) -> str:
    rows = [_summary_row(name, pairs, "") for name, pairs in results.ours.items()]
    for peer in PEERS:
        answers = [result.answers[peer.module] for result in results.everything]
        seconds = median([answer.cpu_seconds for answer in answers if answer.predicted_bytes] or [0.0])
        name = f"{peer.name}, {peer.measured.removeprefix('peak_')}"
        rows.append(_summary_row(name, results.of(peer), f"{seconds:.0f}"))
    head = ("tool, compared with", "answers", "median error", "within 2%", "within 10%", "worst", "CPU seconds")
    return table(head, rows)


def _summary_row(name: str, pairs: Pairs, seconds: str) -> tuple[str, ...]:
    errors = {workload: predicted / measured - 1 for workload, (measured, predicted) in _answered(pairs)}
    sizes = [abs(error) for error in errors.values()]
    if not errors:
        return name, f"0 of {len(pairs)}", "", "", "", "", seconds
    worst = max(errors, key=lambda workload: abs(errors[workload]))
    within = [f"{sum(size <= bound for size in sizes)}" for bound in (0.02, 0.1)]
    answers = f"{len(errors)} of {len(pairs)}"
    return name, answers, f"{median(sizes):.2%}", *within, f"{errors[worst]:+.0%} ({worst})", seconds


def _answered(pairs: Pairs) -> Iterator[tuple[str, tuple[int, int]]]:
    return ((workload, pair) for workload, pair in pairs.items() if pair)


def _errors(results: Results) -> str:
    (allocated, reserved), of = results.ours.values(), {peer.name: results.of(peer) for peer in PEERS}
    by_allocated = {"peaksight": allocated, **{p.name: of[p.name] for p in PEERS if p.measured == "peak_allocated"}}
    by_reserved = {"peaksight": reserved, **{p.name: of[p.name] for p in PEERS if p.measured == "peak_reserved"}}
    head = ("workload", "GiB allocated", *by_allocated, "GiB reserved", *by_reserved)
    return table(head, (_errors_row(w, by_allocated, by_reserved) for w in results.workloads))


def _errors_row(
    workload: Workload,
    by_allocated: Mapping[str, Pairs],
    by_reserved: Mapping[str, Pairs],
) -> tuple[str, ...]:
    return (
        workload.name,
        f"{workload.measured['peak_allocated'] / GIB:.3f}",
        *(_error(pairs[workload.name]) for pairs in by_allocated.values()),
        f"{workload.measured['peak_reserved'] / GIB:.3f}",
        *(_error(pairs[workload.name]) for pairs in by_reserved.values()),
    )


def _error(pair: tuple[int, int] | None) -> str:
    return f"{pair[1] / pair[0] - 1:+.2%}" if pair else ""


def _reasons(results: Results) -> str:
    lines = [
        f"- {result.prediction.workload.name}, {peer.name}: {_reason(result.answers[peer.module])}"
        for result in results.everything
        for peer in PEERS
        if result.answers[peer.module].predicted_bytes is None
    ]
    return "\n".join(["Without a number:", "", *lines]) if lines else ""


def _reason(answer: Answer) -> str:
    return answer.reason if answer.is_applicable else f"not applicable, {answer.reason}"
