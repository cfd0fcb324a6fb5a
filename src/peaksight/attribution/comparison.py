"""Where the difference of two peaks comes from: by category, by module and by line, each adding up to it."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from peaksight.attribution.devices import capture_of_peak
from peaksight.attribution.line_matching import match_lines
from peaksight.attribution.phases import peaks_by_phase
from peaksight.records import (
    Capture,
    CategoryDifference,
    CauseDifference,
    ComparedRun,
    Comparison,
    Finding,
    Holder,
    LineDifference,
    LineMatch,
    ModuleDifference,
    PhaseDifference,
    Report,
)

SCHEMA = "peaksight.comparison/1"

K = TypeVar("K", bound=Hashable)

# The line in A and in B, and how they were matched.
_Place = tuple[str | None, str | None, LineMatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """A run with its report, which has the peak of `capture`; `given` is how a person names it."""

    given: str
    report: Report
    capture: Capture

    @classmethod
    def of(cls, captures: Sequence[Capture], report: Report, given: str) -> "JudgedRun":
        """The run of one command, as a capture file has it, and the report on it."""
        return cls(given=given, report=report, capture=capture_of_peak(captures, report.device, report.rank))


def compare_runs(a: JudgedRun, b: JudgedRun) -> Comparison:
    """What `b` holds at its peak beyond what `a` holds at its own, where each is tightest if they use several cards."""
    return Comparison(
        schema=SCHEMA,
        a=_side(a),
        b=_side(b),
        allocated_difference_bytes=b.report.peak.allocated_bytes - a.report.peak.allocated_bytes,
        reserved_difference_bytes=b.report.peak.reserved_bytes - a.report.peak.reserved_bytes,
        by_phase=_by_phase(a.capture, b.capture),
        by_category=_by_category(a.report.live_at_peak, b.report.live_at_peak),
        by_module=_by_module(a.report.live_at_peak, b.report.live_at_peak),
        by_line=_by_line(a, b),
        causes=_causes(a.report.findings or (), b.report.findings or ()),
    )


def _side(run: JudgedRun) -> ComparedRun:
    report = run.report
    return ComparedRun(
        given=run.given,
        argv=report.argv,
        gpu=report.gpu,
        torch=report.torch,
        device_rules=report.device_rules,
        fits=report.fits,
        peak=report.peak,
        oom=None if report.oom is None else replace(report.oom, live=()),
        not_simulated=report.not_simulated,
        device=report.device,
        num_devices=len(report.devices),
    )


def _by_phase(a: Capture, b: Capture) -> tuple[PhaseDifference, ...]:
    """In the order in which they come in the runs."""
    a_peaks, b_peaks = peaks_by_phase(a), peaks_by_phase(b)
    return tuple(
        PhaseDifference(phase=phase, a_bytes=a_peaks.get(phase), b_bytes=b_peaks.get(phase))
        for phase in a_peaks | b_peaks
    )


def _by_category(a: Iterable[Holder], b: Iterable[Holder]) -> tuple[CategoryDifference, ...]:
    sums = _largest_first(_sums(a, lambda holder: holder.category), _sums(b, lambda holder: holder.category))
    return tuple(
        CategoryDifference(category=category, a_bytes=a_bytes, b_bytes=b_bytes, difference_bytes=b_bytes - a_bytes)
        for category, a_bytes, b_bytes in sums
    )


def _by_module(a: Iterable[Holder], b: Iterable[Holder]) -> tuple[ModuleDifference, ...]:
    sums = _largest_first(_sums(a, lambda holder: holder.module), _sums(b, lambda holder: holder.module))
    return tuple(
        ModuleDifference(module=module, a_bytes=a_bytes, b_bytes=b_bytes, difference_bytes=b_bytes - a_bytes)
        for module, a_bytes, b_bytes in sums
    )


def _by_line(a: JudgedRun, b: JudgedRun) -> tuple[LineDifference, ...]:
    a_places, b_places = _places(a.capture, b.capture)
    a_sums = _sums(a.report.live_at_peak, lambda holder: a_places[holder.source])
    b_sums = _sums(b.report.live_at_peak, lambda holder: b_places[holder.source])
    a_texts, b_texts = ({line.at: line.text for line in run.capture.source_lines} for run in (a, b))
    return tuple(
        LineDifference(
            a_source=a_source,
            b_source=b_source,
            matched=matched,
            text=b_texts.get(b_source or "") or a_texts.get(a_source or "", ""),
            a_bytes=a_bytes,
            b_bytes=b_bytes,
            difference_bytes=b_bytes - a_bytes,
        )
        for (a_source, b_source, matched), a_bytes, b_bytes in _largest_first(a_sums, b_sums)
    )


def _causes(a: Sequence[Finding], b: Sequence[Finding]) -> tuple[CauseDifference, ...]:
    """In the order of B's findings, then those of A alone."""
    a_largest, b_largest = _largest_of_rules(a), _largest_of_rules(b)
    return tuple(
        CauseDifference(
            rule=rule,
            title=finding.title,
            a_bytes=a_largest[rule].bytes if rule in a_largest else None,
            b_bytes=b_largest[rule].bytes if rule in b_largest else None,
        )
        for rule, finding in (b_largest | {rule: f for rule, f in a_largest.items() if rule not in b_largest}).items()
    )


def _largest_of_rules(findings: Sequence[Finding]) -> dict[str, Finding]:
    largest: dict[str, Finding] = {}
    for finding in findings:
        if finding.rule not in largest or finding.bytes > largest[finding.rule].bytes:
            largest[finding.rule] = finding
    return largest


def _places(a: Capture, b: Capture) -> tuple[dict[str, _Place], dict[str, _Place]]:
    """The row of each line of A, and that of each line of B; what no line made is the same in both."""
    nowhere = "", "", LineMatch.SAME_FILE
    a_places: dict[str, _Place] = {"": nowhere}
    b_places: dict[str, _Place] = {"": nowhere}
    for source, (other, how) in match_lines(a, b).items():
        a_places[source] = b_places[other] = source, other, how
    for allocation in a.allocations:
        a_places.setdefault(allocation.source, (allocation.source, None, LineMatch.ALONE))
    for allocation in b.allocations:
        b_places.setdefault(allocation.source, (None, allocation.source, LineMatch.ALONE))
    return a_places, b_places


def _sums(holders: Iterable[Holder], key: Callable[[Holder], K]) -> dict[K, int]:
    sums: dict[K, int] = defaultdict(int)
    for holder in holders:
        sums[key(holder)] += holder.bytes
    return sums


def _largest_first(a: dict[K, int], b: dict[K, int]) -> list[tuple[K, int, int]]:
    """Each key with its bytes in both: by the size of their difference, then by their own."""
    rows = [(key, a.get(key, 0), b.get(key, 0)) for key in a | b]
    return sorted(rows, key=lambda row: (-abs(row[2] - row[1]), -max(row[1:]), str(row[0])))
