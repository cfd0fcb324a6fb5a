"""How far the predictions are from what they aim for."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from benchmarks.accuracy.scores import Score
from benchmarks.tables import table
from peaksight.units import MIB

PROCESS_BYTES = 200 * MIB


def render_goals(scores: Sequence[Score]) -> str:
    """A section with a row for each goal; nothing without scores."""
    if not scores:
        return ""
    return "\n\n".join(["## Goals", table(("goal", "reached", "missing"), _rows(scores))])


def _rows(scores: Sequence[Score]) -> Iterator[tuple[str, str, str]]:
    allocated, reserved = _errors(scores, lambda s: s.allocated_error), _errors(scores, lambda s: s.reserved_error)
    yield _at_most("allocated: median error at most 0.5%", 0.005, median(allocated.values()))
    yield _at_least("allocated: nine in ten within 2%", 0.9, _share([e <= 0.02 for e in allocated.values()]))
    yield _at_most("allocated: none over 5%", 0.05, *_worst(allocated))
    yield _at_most("reserved: median error at most 1.5%", 0.015, median(reserved.values()))
    yield _at_most("reserved: none over 6%", 0.06, *_worst(reserved))
    yield _at_least("process: all within 200 MiB or 2%", 1.0, _share([_is_near(s) for s in scores]))
    yield _at_least("lines: 95% of the bytes on the right one", 0.95, _on_their_line(scores))


def _errors(scores: Sequence[Score], error: Callable[[Score], float]) -> dict[str, float]:
    return {score.name: abs(error(score)) for score in scores}


def _worst(errors: dict[str, float]) -> tuple[float, str]:
    worst = max(errors, key=lambda name: errors[name])
    return errors[worst], worst


def _is_near(score: Score) -> bool:
    difference = abs(score.predicted_process_bytes - score.measured_process_bytes)
    return difference <= PROCESS_BYTES or abs(score.process_error) <= 0.02


def _on_their_line(scores: Sequence[Score]) -> float:
    of_lines = [(score.line_share, score.line_bytes) for score in scores if score.line_share is not None]
    total = sum(num_bytes for _, num_bytes in of_lines)
    return sum(share * num_bytes for share, num_bytes in of_lines) / total if total else 1.0


def _share(are_right: Sequence[bool]) -> float:
    return sum(are_right) / len(are_right)


def _at_most(goal: str, bound: float, value: float, name: str = "") -> tuple[str, str, str]:
    reached = f"{value:.2%} ({name})" if name else f"{value:.2%}"
    return goal, reached, f"{value - bound:.2%} too much" if value > bound else "nothing"


def _at_least(goal: str, bound: float, value: float) -> tuple[str, str, str]:
    return goal, f"{value:.1%}", f"{bound - value:.1%}" if value < bound else "nothing"
