"""What the page of `peaksight compare` says in whole sentences."""

from collections.abc import Iterator

from peaksight.records import (
    CommitHistory,
    CommitPeak,
    ComparedRun,
    Comparison,
    LineDifference,
    LineMatch,
    Phase,
    PhaseDifference,
)
from peaksight.reporting.cards import a_card, card_name, fit_words
from peaksight.reporting.sentences import moment
from peaksight.units import format_bytes, format_difference

NUM_COMMIT_LETTERS = 8

_THE_PHASE = {
    Phase.INIT: "the time before the first forward",
    Phase.FORWARD: "the forward",
    Phase.BACKWARD: "the backward",
    Phase.OPTIMIZER: "the optimizer step",
    Phase.EVALUATION: "the evaluation",
    Phase.SAVE: "saving",
    Phase.OTHER: "the rest of the step",
}


def happened(comparison: Comparison) -> str:
    """The difference in one sentence."""
    a, b, change_bytes = comparison.a.peak, comparison.b.peak, comparison.allocated_difference_bytes
    reserved = (
        f"reserved {format_bytes(b.reserved_bytes)} instead of {format_bytes(a.reserved_bytes)} "
        f"({format_difference(comparison.reserved_difference_bytes)})"
        if comparison.reserved_difference_bytes
        else f"reserved {format_bytes(b.reserved_bytes)} in both"
    )
    if not change_bytes:
        return f"The predicted peaks of A and B are the same, {format_bytes(b.allocated_bytes)} allocated; {reserved}."
    return (
        f"B peaks {format_bytes(abs(change_bytes))} {'higher' if change_bytes > 0 else 'lower'} than A (predicted): "
        f"{format_bytes(b.allocated_bytes)} instead of {format_bytes(a.allocated_bytes)} allocated; {reserved}."
    )


def moved(comparison: Comparison) -> str:
    """Whether the peak is at another moment, empty where it is not."""
    a, b = comparison.a.peak, comparison.b.peak
    if not a.allocated_bytes or not b.allocated_bytes:
        return ""
    if a.phase is not b.phase:
        most = {row.phase: row for row in comparison.by_phase}
        before, after = (f"{_THE_PHASE[phase]} {_went(most[phase])}" for phase in (a.phase, b.phase))
        return (
            f"The peak moved from {_THE_PHASE[a.phase]} to {_THE_PHASE[b.phase]}: {before}, {after}. "
            "The tables compare what is alive at these two moments."
        )
    at_same_line = a.at == b.at or any((row.a_source, row.b_source) == (a.at, b.at) for row in comparison.by_line)
    if not at_same_line:
        return f"The peak stays in {_THE_PHASE[a.phase]} and moved from {a.at or 'no line'} to {b.at or 'no line'}."
    return f"The peak moved from step {a.step} to step {b.step}." if a.step != b.step else ""


def _went(phase: PhaseDifference) -> str:
    """What became of the most that was allocated in `phase`."""
    if phase.a_bytes is None or phase.b_bytes is None:
        name, num_bytes = ("B", phase.b_bytes) if phase.a_bytes is None else ("A", phase.a_bytes)
        return f"takes {format_bytes(num_bytes or 0)} and is in {name} only"
    if phase.a_bytes == phase.b_bytes:
        return f"takes {format_bytes(phase.b_bytes)} in both"
    way = "rose" if phase.b_bytes > phase.a_bytes else "fell"
    return f"{way} from {format_bytes(phase.a_bytes)} to {format_bytes(phase.b_bytes)}"


def run_lines(run: ComparedRun) -> Iterator[str]:
    """What was compared, whether it fits, and where its peak is."""
    command = " ".join(run.argv)
    yield run.given if run.given.endswith(command) else f"{run.given}: {command}"
    yield f"{fit_words(run.fits, fails=run.oom is not None)} {_cards(run)}, {format_bytes(run.gpu.usable_bytes)} usable"
    if run.oom is not None:
        yield f"fails {moment(run.oom)}"
    if run.peak.allocated_bytes:
        yield f"peaks {moment(run.peak)}"


def _cards(run: ComparedRun) -> str:
    if run.num_devices <= 1:
        return a_card(run.gpu)
    return f"{run.num_devices} {run.gpu.name}, tightest on {card_name(run.device)}"


def matching(comparison: Comparison) -> str:
    """How lines of A were found in B, empty where none is in both."""
    ways = {row.matched for row in comparison.by_line if row.a_source}
    said = []
    if LineMatch.SAME_FILE in ways:
        said.append("In files that are the same in both runs, a line is matched by its number.")
    if ways & {LineMatch.TEXT, LineMatch.EDITED}:
        edited = ", an edited one (~) by likeness" if LineMatch.EDITED in ways else ""
        said.append(f"In files that changed, a line is matched by what it says{edited}.")
    if LineMatch.NUMBER in ways:
        said.append("Where it is not known of both runs what lines say, they are matched by number.")
    return " ".join(said)


def origin(comparison: Comparison) -> tuple[str, ...]:
    """Versions, and what either run did not simulate exactly."""
    a, b = comparison.a, comparison.b
    versions = [(f"torch {run.torch}", f"device rules {run.device_rules}") for run in (a, b)]
    told = (
        versions[0] if versions[0] == versions[1] else (f"A: {', '.join(versions[0])}", f"B: {', '.join(versions[1])}")
    )
    slugs = sorted({unknown.slug for unknown in a.not_simulated + b.not_simulated})
    return *told, *([f"not simulated exactly: {', '.join(slugs)}"] if slugs else [])


def over_commits(history: CommitHistory) -> str:
    """How the peak moved, in one sentence."""
    answered = [commit for commit in history.commits if commit.allocated_bytes is not None]
    if not answered:
        return f"No answer: none of {len(history.commits)} commits gave one."
    first, last = answered[0].allocated_bytes or 0, answered[-1].allocated_bytes or 0
    most = max(answered, key=lambda commit: abs(commit.allocated_difference_bytes or 0))
    if not most.allocated_difference_bytes:
        return f"No commit of {history.range} moves the predicted peak: {format_bytes(last)} allocated."
    way = (
        f"goes from {format_bytes(first)} to {format_bytes(last)} allocated over {history.range} "
        f"({format_difference(last - first)})"
        if first != last
        else f"is {format_bytes(last)} allocated before and after {history.range}"
    )
    change = format_difference(most.allocated_difference_bytes)
    return f"The predicted peak {way}; the largest change is {change} in {short(most.commit)} ({most.subject})."


def commit_notes(commit: CommitPeak, parent: str | None) -> Iterator[str]:
    """What more there is to say of a commit, whose first parent is `parent`."""
    if commit.allocated_bytes is None:
        yield f"no answer: {commit.failure}"
    if commit.largest is not None:
        difference = format_difference(commit.largest.difference_bytes)
        yield f"{difference} at {_line_of_commit(commit.largest)}  {commit.largest.text}".rstrip()
    if commit.since not in (None, parent):
        yield f"compared with {short(commit.since or '')}, the last one with an answer"
    if commit.fits is False:
        yield "does not fit"


def _line_of_commit(line: LineDifference) -> str:
    """The line at the commit, or the one that it took away."""
    if line.b_source is None:
        return f"{line.a_source} (gone)"
    return f"{line.b_source or 'no line of the script'}{' (new)' if line.a_source is None else ''}"


def short(commit: str) -> str:
    """A commit's hash as a person reads it."""
    return commit[:NUM_COMMIT_LETTERS]
