"""What peers answer, asked about one workload in processes of their own."""

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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


def read_answers(file: Path) -> dict[str, dict[str, Answer]]:
    """What `keep` wrote to `file`, by workload and module; nothing if there is none."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {name: _by_module(answers) for name, answers in map(json.loads, lines)}


def keep(answers: dict[str, Answer], name: str, file: Path) -> None:
    """Add the `answers` about the workload `name` to `file`, a line of JSON."""
    with file.open("a", encoding="utf-8") as kept:
        print(json.dumps([name, {module: asdict(answer) for module, answer in answers.items()}]), file=kept)


def ask(workload: Workload, *, python: str, cpu_seconds: float) -> dict[str, Answer]:
    """The answers of all peers by module, on the interpreter `python`; each has `cpu_seconds`."""
    command = [python, "-m", "benchmarks.peers.worker", workload.name, str(cpu_seconds)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | ENVIRONMENT | SETTINGS, capture_output=True, text=True)
    if done.returncode:
        reason = done.stderr.splitlines()[-1]
        return {peer.module: Answer(reason=reason) for peer in PEERS}
    return _by_module(json.loads(done.stdout.splitlines()[-1]))


def _by_module(answers: dict[str, dict[str, Any]]) -> dict[str, Answer]:
    return {module: Answer(**answer) for module, answer in answers.items()}
