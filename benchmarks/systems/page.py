"""`python -m benchmarks.systems.page` writes docs/systems.md from what was predicted, certified and measured."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.systems import pi0_dex
from benchmarks.systems.cases import CERTIFICATES, MEASURED, PREDICTED, Case, all_cases
from benchmarks.tables import table
from peaksight.units import format_bytes

PAGE = Path(__file__).parents[2] / "docs" / "systems.md"
VARIANTS = ("before", "note", "fixed")
_HEAD = ("system", "blamed", "that is", "what is so", "found", "before", "note's fix", "right fix", "certificates")
_RUNS_HEAD = ("run", "allocated, predicted", "measured", "off by", "reserved, predicted", "measured", "off by", "limit")

_INTRODUCTION = """# The five systems

Written by `make systems`. Five published post-mortems of an out-of-memory error, each rebuilt as a training script in
`examples/systems`: as its authors had it (`before`), with the fix that they published (`note`), and with one that does
what it is meant to (`fixed`). Each has a README that says what the note claimed and what is so.

- *that is*: what peaksight says of the cause that the note names.
- *found*: the rank of the true cause among the findings of `before`.
- Peaks are of allocated memory, predicted / measured, at full scale; "fails" where the note's card is too small.
- Predictions came first and were then measured. Those of dcal_vit were then made anew: traces of these runs showed that
  the softmax of float16 autocast reads float16 itself. At first `note` and `fixed` were to reserve 4 and 9 % too much.
- *certificates*: whether the note's fix and the right one train the same model as `before`, by `peaksight verify` at
  the small scale, which really runs.
"""


def main() -> None:
    """Write the page."""
    predicted, certificates, measured = (
        json.loads(path.read_text()) if path.exists() else {} for path in (PREDICTED, CERTIFICATES, MEASURED)
    )
    systems = [
        (case, predicted[case.name], measured.get(case.name, {}), certificates.get(case.name, {}))
        for case in all_cases()
        if case.name in predicted
    ]
    systems.append(pi0_dex.records())
    rows, sections = ([render(*system) for system in systems] for render in (_row, _section))
    PAGE.write_text(f"{_INTRODUCTION}\n{table(_HEAD, rows)}\n{''.join(sections)}", encoding="utf-8")


def _row(case: Case, predicted: dict, measured: dict, certificates: dict) -> tuple[str, ...]:
    peaks = (_peaks(predicted[run], measured.get(run, {})) for run in VARIANTS)
    verdicts = ", ".join(f"{pair}: {certificates[pair]['verdict']}" for pair in VARIANTS if pair in certificates)
    found = _found(predicted["before"], case.runs["before"].cause)
    return case.title, case.note_says, _verdict(case, predicted["before"]), case.is_so, found, *peaks, verdicts


def _verdict(case: Case, predicted: dict) -> str:
    """What was said of the cause that the note blames."""
    if case.blamed in predicted["refuted"]:
        return "refuted"
    claimed = [each for each in predicted["findings"] if each["rule"] == case.blamed]
    if not claimed:
        return "not named"
    return f"{format_bytes(claimed[0]['bytes'])} of the peak"


def _found(predicted: dict, cause: tuple[str, ...]) -> str:
    """The rank of the first of the true causes, from 1."""
    rules = [each["rule"] for each in predicted["findings"]]
    ranks = [rules.index(rule) + 1 for rule in cause if rule in rules]
    return f"yes, {min(ranks)} of {len(rules)}" if ranks else "no"


def _peaks(predicted: dict, measured: dict) -> str:
    """Predicted and measured, each with whether the note's card is too small."""
    said = format_bytes(predicted["peak"]["allocated_bytes"]) + (", fails" if predicted["oom"] else "")
    peak = measured.get("peak", {})
    if "allocated_bytes" not in peak:
        return f"{said} / {'fails' if measured.get('limited', {}).get('oom') else 'not measured'}"
    return f"{said} / {format_bytes(peak['allocated_bytes'])}" + (", fails" if measured["limited"].get("oom") else "")


def _section(case: Case, predicted: dict, measured: dict, certificates: dict) -> str:
    """Every run of one system."""
    card = next(iter(predicted.values()))
    limit = format_bytes(card["usable_bytes"])
    about = f"Limited to what a {case.card} gives, {limit}. Predicted for an {card['card']}, {_release(card)}"
    if measured:
        first = next(iter(measured.values()))
        about += f"; measured on an {first['card']}, {_release(first)}, {first['measured_on']}"
    rows = [_run_row(run, predicted[run], measured.get(run, {})) for run in predicted]
    causes = "".join(f"- {run}: {_causes(predicted[run])}\n" for run in predicted)
    verdicts = "".join(f"- {line}\n" for line in _certified(case, certificates))
    return (
        f"\n## {case.name}\n\n{about}.\n\n{table(_RUNS_HEAD, rows)}\n\n"
        f"Findings, in their order, with the bytes by which the peak would fall:\n{causes}\nCertificates:\n{verdicts}"
    )


def _release(facts: dict[str, Any]) -> str:
    """What was simulated or ran."""
    return facts.get("release") or f"torch {facts.get('device_rules') or facts['torch']}"


def _run_row(run: str, predicted: dict, measured: dict) -> tuple[str, ...]:
    peak, real = predicted["peak"], measured.get("peak", {})
    cells: list[str] = []
    for key in ("allocated_bytes", "reserved_bytes"):
        cells += [format_bytes(peak[key]), *_compared(peak[key], real.get(key))]
    return run, *cells, _ending(predicted["oom"], measured.get("limited")) if predicted.get("is_limited", True) else ""


def _compared(predicted: int, measured: int | None) -> tuple[str, str]:
    return (format_bytes(measured), f"{predicted / measured - 1:+.2%}") if measured else ("", "")


def _ending(oom: dict | None, limited: dict[str, Any] | None) -> str:
    """Where the limited run fails, predicted and measured."""
    said = f"fails at {oom['at'] or oom['phase']}, step {oom['step']}" if oom else "trains"
    if limited is None or "allocated_bytes" not in limited:
        return said
    real = limited["oom"]
    seen = f"fails at {real['at']}, step {real['step']}" if real else "trains"
    return f"{said}; so it does" if seen == said else f"{said}; measured: {seen}"


def _causes(predicted: dict) -> str:
    return ", ".join(f"{each['rule']} ({format_bytes(each['bytes'])})" for each in predicted["findings"]) or "none"


def _certified(case: Case, certificates: dict) -> Iterator[str]:
    for pair, certificate in certificates.items():
        words = case.certificates[pair]
        expected = "" if certificate["verdict"] == words.verdict else f" (expected: {words.verdict})"
        reasons = " ".join(certificate["reasons"])
        yield f"{pair}, `{words.changed}` against `{words.original}`: {certificate['verdict']}{expected}. {reasons}"


if __name__ == "__main__":
    main()
