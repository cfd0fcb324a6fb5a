"""Starts a script in a process of its own, records it, and reads what it left."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from peaksight.errors import ScriptError
from peaksight.records import ScriptCommand
from peaksight.records.encoding import encode_json
from peaksight.records.training import Job, TrainingRun
from peaksight.verification.processes import start_process

_CHILD = "peaksight.verification.child"
# What a launcher sets for each rank by itself.
_OF_RANKS = {"RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "MASTER_ADDR", "MASTER_PORT", "ROLE_NAME"}
_OF_RANKS |= {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "ROLE_WORLD_SIZE"}
# So that results do not depend on chance, and nothing is published.
_ENVIRONMENT = {"PYTHONHASHSEED": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "WANDB_MODE": "disabled"}

Tensors = dict[str, dict[str, torch.Tensor]]
# Runs the words of a process in an environment, what it prints going to a file, and returns its exit code; raises
# subprocess.TimeoutExpired where it does not end in time.
Start = Callable[[Sequence[str], Mapping[str, str], Path], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What a recorded run left in `directory`: one record a rank, and the tensors of each step."""

    directory: Path
    ranks: tuple[TrainingRun, ...]

    def tensors(self, rank: int, step: int) -> Tensors:
        """The tensors of optimizer step `step`, from 1, by kind and name; of the last rank where there are fewer."""
        rank = min(rank, len(self.ranks) - 1)
        path = self.directory / f"rank{self.ranks[rank].rank}" / f"step{step}.pt"
        tensors: Tensors = torch.load(path, mmap=True)
        return tensors


def record(command: ScriptCommand, job: Job, *, start: Start = start_process) -> Recording:
    """Run `command` as `job` says, in processes that `start` starts.

    Raises:
        ScriptError: the script failed, or did not end in time.
    """
    directory = Path(job.directory)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "job.json").write_bytes(encode_json(job))
    log = directory / "log.txt"
    try:
        code = start(_words(command), _environment(command, directory), log)
    except subprocess.TimeoutExpired as error:
        raise _timed_out(command, error.timeout, log) from None
    return _read(command, directory, code, log)


def _words(command: ScriptCommand) -> list[str]:
    launcher: list[str] = []
    if _is_launched(command):
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={command.processes}"]
    return [sys.executable, *launcher, "-m", _CHILD, *command.argv]


def _is_launched(command: ScriptCommand) -> bool:
    return "RANK" in dict(command.environment)


def _environment(command: ScriptCommand, directory: Path) -> dict[str, str]:
    changes: dict[str, Any] = {**_ENVIRONMENT, **dict(command.environment)}
    if _is_launched(command):
        changes = {name: value for name, value in changes.items() if name not in _OF_RANKS}
    changes["PEAKSIGHT_JOB"] = str(directory / "job.json")
    environment = {**os.environ, **{name: value for name, value in changes.items() if value is not None}}
    return {name: value for name, value in environment.items() if changes.get(name, value) is not None}


def _read(command: ScriptCommand, directory: Path, code: int, log: Path) -> Recording:
    files = sorted(directory.glob("rank*/run.json"), key=lambda path: int(path.parent.name.removeprefix("rank")))
    ranks = tuple(msgspec.json.decode(file.read_bytes(), type=TrainingRun) for file in files)
    failed = next((rank for rank in ranks if rank.outcome == "failed"), None)
    if failed:
        raise _failed(command, failed.error.strip().splitlines()[-1], log)
    if not ranks or code or len(ranks) != ranks[0].world_size:
        raise _failed(command, f"it ended with code {code}", log)
    return Recording(directory=directory, ranks=ranks)


def _failed(command: ScriptCommand, cause: str, log: Path) -> ScriptError:
    return ScriptError(
        f"{_tail(log)}\nNo answer: `{' '.join(command.argv)}` failed: {cause}. Make it run by itself first.",
        slug="run-failed",
    )


def _timed_out(command: ScriptCommand, seconds: float, log: Path) -> ScriptError:
    return ScriptError(
        f"{_tail(log)}\nNo answer: `{' '.join(command.argv)}` was still running after {seconds:g} seconds. "
        "Ask for fewer --steps, a smaller size (--with), or a longer --timeout.",
        slug="run-timed-out",
    )


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-30:])
