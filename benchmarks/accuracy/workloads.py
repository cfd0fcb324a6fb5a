"""The measured workloads of benchmarks/truth."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).parents[1] / "truth"
PREDICTED_FIRST = Path(__file__).parents[1] / "predicted_first"
SCRIPTS = TRUTH / "scripts"

GPU = "h100-80gb"
TORCH = "2.11+cu130"
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A script of `directory` with its arguments, and what a card, `gpu` in our words, measured of it.

    `first` is what was predicted before it was measured, in a workload of benchmarks/predicted_first. `rank` is which
    of two it measured, None of a run without ranks.
    """

    name: str
    words: tuple[str, ...]
    measured: dict[str, Any]
    directory: Path = SCRIPTS
    gpu: str = GPU
    first: dict[str, Any] | None = None
    rank: int | None = None

    @property
    def base_name(self) -> str:
        """The name without the card, which tells the workloads apart that were measured on several."""
        return self.name.removesuffix(f"-{self.gpu}")


def workloads(prefixes: tuple[str, ...] = ("",)) -> list[Workload]:
    """The workloads of the manifest whose names start with one of `prefixes`, in its order."""
    manifest = json.loads((TRUTH / "manifest.json").read_text())
    return [_workload(entry) for entry in manifest if entry["id"].startswith(prefixes)]


def on_two_ranks(prefixes: tuple[str, ...] = ("",)) -> list[Workload]:
    """The measured ranks of jobs of two whose names start with one of `prefixes`, on H200."""
    files = sorted((TRUTH / "measured").glob("*.rank?.json"))
    return [_rank(file) for file in files if file.name.startswith(prefixes)]


def workload_named(name: str) -> Workload:
    """The workload `name`, of either folder."""
    (workload,) = (workload for workload in [*workloads(), *predicted_first()] if workload.name == name)
    return workload


def trace_of(name: str) -> Path:
    """The recorded trace of the workload `name`."""
    return next(
        file for folder in (TRUTH, PREDICTED_FIRST) if (file := folder / "traces" / f"{name}.trace.json.gz").exists()
    )


def _rank(file: Path) -> Workload:
    measured = json.loads(file.read_text())
    words = ("torchrun", "--nproc-per-node", "2", *measured["argv"])
    return Workload(name=file.stem, words=words, measured=measured, gpu="h200", rank=int(file.stem[-1]))


def predicted_first(prefixes: tuple[str, ...] = ("",)) -> list[Workload]:
    """The workloads of benchmarks/predicted_first whose names start with one of `prefixes` and that were measured."""
    predicted = json.loads((PREDICTED_FIRST / "predicted.json").read_text())
    chosen = [(name, record) for name, record in predicted.items() if name.startswith(prefixes)]
    return [_first(name, record) for name, record in chosen if _measured_first(name).exists()]


def _first(name: str, record: dict[str, Any]) -> Workload:
    return Workload(
        name=name,
        words=tuple(record["argv"]),
        measured=json.loads(_measured_first(name).read_text()),
        directory=PREDICTED_FIRST / record.get("directory", "."),
        gpu=record.get("card", GPU),
        first=record,
    )


def _measured_first(name: str) -> Path:
    return PREDICTED_FIRST / "measured" / f"{name}.json"


def _workload(entry: dict[str, Any]) -> Workload:
    measured = json.loads((TRUTH / "measured" / f"{entry['id']}.json").read_text())
    return Workload(name=entry["id"], words=(entry["script"], *entry["args"]), measured=measured)
