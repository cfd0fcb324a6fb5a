"""Runs a workload through the command, as a user would."""

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.workloads import ENVIRONMENT, TORCH, Workload
from peaksight.records import Report
from peaksight.reporting import report_from_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """The command's report on `workload`; None when there is none, and then `failure` is its reason in one line."""

    workload: Workload
    report: Report | None
    failure: str
    seconds: float


def predict(workload: Workload, timeout_seconds: float = 900) -> Prediction:
    """Simulate `workload` on the card and the build that it was measured on."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "report.json"
        failure = _run(workload, file, timeout_seconds)
        report = report_from_json(file.read_text()) if not failure else None
    return Prediction(workload=workload, report=report, failure=failure, seconds=time.perf_counter() - started)


def _run(workload: Workload, file: Path, timeout_seconds: float) -> str:
    """Why the command gave no answer; empty when it did."""
    rank = () if workload.rank is None else ("--rank", str(workload.rank))
    options = ("--gpu", workload.gpu, "--torch", TORCH, "--json", str(file), *rank)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "peaksight", "run", *options, *workload.words],
            cwd=workload.directory,
            env=os.environ | ENVIRONMENT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {timeout_seconds:.0f} s"
    return _reason(done) if done.returncode not in (0, 1) or not file.exists() else ""


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The exception at the end of the script's traceback, else the last line of all."""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    exceptions = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (exceptions or lines or [f"exit code {done.returncode}"])[-1]
