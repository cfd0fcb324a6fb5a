"""pi0_dex as the other systems are recorded: what predict_jax.py, certify_jax.py and measure_jax.py wrote.

JAX has a pool in place of segments: what is reserved is what is in use.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.systems.cases import Case, Pair, Run

HERE = Path(__file__).parent
_PROGRAM = re.compile(r"executable_name='jit_(\w+)'")
CASE = Case(
    name="pi0_dex",
    title="Pi0 with a second hand",
    card="48 GB card (JAX takes 75 % of it)",
    memory="48GiB",
    blamed="",  # no rule is about tracing
    note_says="tracing two forward passes",
    is_so="a filter that freezes nothing; the state fills the pool in init",
    runs={"before": Run(words="--variant before", cause=("jax-freeze-filter",))},
    certificates={},
)


def records() -> tuple[Case, dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The case with what was predicted, measured and certified, by run and by pair."""
    predicted, measured, certificates = (
        json.loads((HERE / f"{name}_jax.json").read_text()) for name in ("predicted", "measured", "certificates")
    )
    date = measured.pop("measured_on")
    pairs = {name: _pair(each) for name, each in certificates.items()}
    return (
        replace(CASE, certificates=pairs),
        {name: _predicted(each, predicted["before"]) for name, each in predicted.items()},
        {name: _measured(each, date) for name, each in measured.items()},
        certificates,
    )


def _pair(certificate: dict[str, Any]) -> Pair:
    return Pair(
        original="--variant before --scale small",
        changed=" ".join([*certificate["words"], "--scale small"]),
        verdict=certificate["expected"],
    )


def _predicted(run: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    limited = run.get("limited") or {}
    return {
        "card": "NVIDIA H200",
        "release": run["peak"]["device_rules"],
        "usable_bytes": before["limited"]["usable_bytes"],
        "peak": _peak(run["peak"]["allocated_bytes"]),
        "oom": limited.get("oom"),
        "findings": run["peak"]["findings"],
        "is_limited": bool(limited),
        "refuted": {},
    }


def _measured(run: dict[str, Any], date: str) -> dict[str, Any]:
    real = run["peak"]
    found = {"card": real["card"], "release": f"JAX {real['jax']}", "measured_on": date}
    return found | {"peak": _peak(real["allocated_bytes"]), "limited": _limited(run.get("limited", {}))}


def _limited(run: dict[str, Any]) -> dict[str, Any]:
    """With the program that failed as the place, as it is predicted; before the first step is step 0."""
    oom = run.get("oom")
    program = _PROGRAM.search(oom["message"]) if oom else None
    if oom is None or program is None:
        return run
    return run | {"oom": oom | {"at": program[1], "step": oom["step"] - (program[1] != "train_step")}}


def _peak(allocated_bytes: int) -> dict[str, int]:
    return {"allocated_bytes": allocated_bytes, "reserved_bytes": allocated_bytes}
