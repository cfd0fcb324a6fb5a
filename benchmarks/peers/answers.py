"""What peers answer, asked about one workload in processes of their own."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.accuracy.workloads import ENVIRONMENT, Workload
from benchmarks.peers.tools import PEERS

ROOT = Path(__file__).parents[2]
SETTINGS = {"PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}


class RefusedError(Exception):
    """The peer gives no number. `is_applicable` is false where its way of asking has no words for the workload."""

    def __init__(self, reason: str, *, is_applicable: bool = True) -> None:
        """`reason` in one line."""
        super().__init__(reason)
        self.is_applicable = is_applicable


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of a peer: `predicted_bytes`, or else the `reason` why there are none."""

    predicted_bytes: int | None = None
    reason: str = ""
    is_applicable: bool = True
    cpu_seconds: float = 0.0


def ask(workload: Workload, *, python: str, cpu_seconds: float) -> dict[str, Answer]:
    """The answers of all peers by module, on the interpreter `python`; each has `cpu_seconds`."""
    command = [python, "-m", "benchmarks.peers.worker", workload.name, str(cpu_seconds)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | ENVIRONMENT | SETTINGS, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.splitlines()[-1]
        return {peer.module: Answer(reason=reason) for peer in PEERS}
    answers = json.loads(done.stdout.splitlines()[-1])
    return {module: Answer(**answer) for module, answer in answers.items()}
