"""Predicts runs under the limits of limits.toml on an H200: `python -m benchmarks.predicted_first.predict_limits`.

What is predicted goes into limits_predicted.json, to be committed before anything is measured; what is there already
stays. A limit is a part of the peaks that the card measured without one, or of those predicted where it did not.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.accuracy.captures import capture
from benchmarks.accuracy.verdicts import predicted_verdict
from benchmarks.accuracy.workloads import TORCH, Workload, predicted_first
from peaksight.gpus import find_card
from peaksight.records import Capture
from peaksight.units import MIB

HERE = Path(__file__).parent
FILE = HERE / "limits_predicted.json"
LIMITED = HERE / "limited"
CARD = "h200"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a run takes without a limit, and whether that was `measured` or `predicted`."""

    allocated_bytes: int
    reserved_bytes: int
    are: str

    def limit_mib(self, part: str) -> int:
        """The limit that is `part` of these peaks: an odd number, so that no segment of 2 MiB meets it exactly."""
        if part == "middle":
            num_bytes = (self.allocated_bytes + self.reserved_bytes) / 2
        else:
            share, of = part.split()
            num_bytes = float(share) * (self.allocated_bytes if of == "allocated" else self.reserved_bytes)
        return int(num_bytes / MIB) | 1


def limits() -> Iterator[tuple[str, str, str]]:
    """Settings, script and part of its peaks."""
    for settings, scripts in tomllib.loads((HERE / "limits.toml").read_text()).items():
        yield from ((settings, name, part) for name, parts in scripts.items() for part in parts)


def identifier(settings: str, name: str, part: str) -> str:
    """Such as `nano_gpt+expandable_segments@0.98-allocated`."""
    under = f"+{settings.split(':')[0]}" if settings else ""
    return f"{name}{under}@{part.replace(' ', '-')}"


def workload_of(name: str) -> Workload:
    """That of limited, or one that was predicted first and measured on the card."""
    if (LIMITED / f"{name}.py").exists():
        return Workload(name=name, words=(f"{name}.py",), measured={}, directory=LIMITED, gpu=CARD)
    return next(each for each in predicted_first((name,)) if each.name == f"{name}-{CARD}")


def peaks_of(workload: Workload, known: dict[str, Any]) -> Peaks:
    """Those measured, those that a limit in `known` is part of, or those of a run without limits."""
    if workload.measured:
        measured = workload.measured
        return Peaks(
            allocated_bytes=measured["peak_allocated"], reserved_bytes=measured["peak_reserved"], are="measured"
        )
    for record in known.values():
        if record["argv"] == list(workload.words):
            return Peaks(**record["without_limit"])
    run = capture(workload)
    return Peaks(allocated_bytes=run.peak_allocated_bytes, reserved_bytes=run.peak_reserved_bytes, are="predicted")


def predict(workload: Workload, settings: str, limit_mib: int) -> dict[str, Any]:
    """How `workload` runs where PyTorch may reserve `limit_mib` of the card."""
    fraction = limit_mib * MIB / find_card(CARD).total_bytes
    words = [f"per_process_memory_fraction:{fraction!r}", *([settings] if settings else [])]
    return outcome(capture(workload, settings=",".join(words)))


def outcome(run: Capture) -> dict[str, Any]:
    """The verdict on `run`, where it failed, and what it got over before."""
    verdict = predicted_verdict(run)
    failed = {} if run.fatal is None else where(run, run.fatal)
    return failed | {
        "fits": verdict.fits if verdict else None,
        "line": verdict.line if verdict else "",
        "size": verdict.size if verdict else "",
        "caught_ooms": len(run.failures) - (run.fatal is not None),
        "retries": sum(step.num_alloc_retries for step in run.steps),
        "peak_allocated_bytes": run.peak_allocated_bytes,
        "peak_reserved_bytes": run.peak_reserved_bytes,
        "finished": run.finished,
    }


def where(run: Capture, index: int) -> dict[str, Any]:
    """Of a failure what tells more than its line."""
    failure = run.failures[index]
    return {
        "op": failure.op,
        "module": failure.module,
        "phase": str(failure.phase.value),
        "step": failure.step,
        "forward_line": failure.source,
        "library": failure.library,
    }


def record_of(settings: str, name: str, part: str, known: dict[str, Any]) -> dict[str, Any]:
    """All that limits_predicted.json keeps of one limit."""
    workload = workload_of(name)
    peaks = peaks_of(workload, known)
    limit_mib = peaks.limit_mib(part)
    return {
        "argv": list(workload.words),
        "directory": str(workload.directory.relative_to(HERE)),
        "card": CARD,
        "gpu": find_card(CARD).name,
        "limit_mib": limit_mib,
        "settings": settings,
        "without_limit": {
            "allocated_bytes": peaks.allocated_bytes,
            "reserved_bytes": peaks.reserved_bytes,
            "are": peaks.are,
        },
        "torch": version("torch"),
        "device_rules": TORCH,
        "predicted_on": str(date.today()),
        "predicted": predict(workload, settings, limit_mib),
    }


def main() -> None:
    """Predict what is not predicted yet, and write it as it comes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="simulations at a time (default: 2)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX", help="only these scripts")
    options = parser.parse_args()
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    wanted = {identifier(*limit): limit for limit in limits() if limit[1].startswith(tuple(options.only))}

    def add(name: str) -> None:
        record = record_of(*wanted[name], known)
        known[name] = record
        print(f"{name}: {record['limit_mib']} MiB: {record['predicted']}", file=sys.stderr, flush=True)
        FILE.write_text(json.dumps({key: known[key] for key in wanted | known if key in known}, indent=1) + "\n")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(add, [name for name in wanted if name not in known]))


if __name__ == "__main__":
    main()
