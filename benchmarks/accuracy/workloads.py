"""The measured workloads of benchmarks/truth."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRUTH = Path(__file__).parents[1] / "truth"
SCRIPTS = TRUTH / "scripts"

GPU = "h100-80gb"
TORCH = "2.11+cu130"
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A script with its arguments, and what the GPU measured of it."""

    name: str
    words: tuple[str, ...]
    measured: dict[str, Any]


def workloads(prefixes: tuple[str, ...] = ("",)) -> list[Workload]:
    """The workloads of the manifest whose names start with one of `prefixes`, in its order."""
    manifest = json.loads((TRUTH / "manifest.json").read_text())
    return [_workload(entry) for entry in manifest if entry["id"].startswith(prefixes)]


def _workload(entry: dict[str, Any]) -> Workload:
    measured = json.loads((TRUTH / "measured" / f"{entry['id']}.json").read_text())
    return Workload(name=entry["id"], words=(entry["script"], *entry["args"]), measured=measured)
