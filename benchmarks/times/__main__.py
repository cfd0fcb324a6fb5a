"""`make times`: predicted against measured seconds of a step; writes docs/times.md."""

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.tables import table
from benchmarks.times.calibrate import CHECKPOINTS, fit_speeds
from benchmarks.times.predict import predict
from peaksight.virtual_gpu.timing.efficiencies import MEASURED_ON

HERE = Path(__file__).parent
MEASURED = HERE / "measured" / "h100-80gb"
PAGE = HERE.parents[1] / "docs" / "times.md"
# A step, and the same step with a change.
CHANGES = (
    ("gpt2-b8", "gpt2-b8-amp", "autocast"),
    ("gpt2-b8", "gpt2-b8-ckpt", "checkpointing"),
    ("gpt2-b8-amp", "gpt2-b8-amp-ckpt", "checkpointing"),
    ("llama-300m-bf16", "llama-300m-bf16-ckpt", "checkpointing"),
    ("vit_b-b64-bf16", "vit_b-b64-bf16-ckpt", "checkpointing"),
    ("gpt2-b8", "gpt2-b4-accum2", "half the batch, twice"),
    ("gpt2-b8-amp", "gpt2-b2-amp-accum4", "a quarter of the batch, four times"),
)


def percent(ratio: float) -> str:
    """By how much a ratio is off one."""
    return f"{ratio - 1:+.0%}"


def page(measured: dict[str, Any], predicted: dict[str, Any], num_cases: int) -> str:
    """docs/times.md."""
    any_step = next(iter(measured.values()))
    errors = {name: predicted[name]["predicted_seconds"] / step["seconds"] for name, step in measured.items()}
    before = json.loads((HERE / "predicted_first.json").read_text())["steps"]
    first = [abs(before[name]["predicted_seconds"] / step["seconds"] - 1) for name, step in measured.items()]
    changes = [(*change, *_ratios(measured, predicted, *change[:2])) for change in CHANGES if change[1] in measured]
    return (HERE / "page.md").read_text().format(
        card=any_step["card"],
        torch=any_step["torch"],
        date=any_step["date"],
        installed=torch.__version__,
        steps=_steps(measured, predicted, errors),
        median=f"{median(abs(error - 1) for error in errors.values()):.0%}",
        worst=f"{max(abs(error - 1) for error in errors.values()):.0%}",
        first_median=f"{median(first):.0%}",
        first_worst=f"{max(first):.0%}",
        spread=f"{max(max(step['steps'][2:]) / min(step['steps'][2:]) for step in measured.values()) - 1:.0%}",
        ratios=table(
            ("step", "change", "measured", "predicted", "error"),
            [
                (name, what, f"{theirs:.2f}", f"{ours:.2f}", percent(ours / theirs))
                for name, _, what, theirs, ours in changes
            ],
        ),
        within=sum(abs(ours / theirs - 1) <= 0.15 for *_, theirs, ours in changes),
        number=len(changes),
        cases=num_cases,
        slowest=f"{_slowest_host():.1f}",
    )  # fmt: skip


def _slowest_host() -> float:
    """How much longer the host took in one session than in another."""
    hosts = {name: json.loads((HERE / "measured" / name / "micro.json").read_text())["host"] for name in MEASURED_ON}
    speeds = fit_speeds(hosts, json.loads(CHECKPOINTS.read_text())["cases"]).values()
    return max(speeds) / min(speeds)


def _ratios(measured: dict[str, Any], predicted: dict[str, Any], plain: str, changed: str) -> tuple[float, float]:
    ours = predicted[changed]["predicted_seconds"] / predicted[plain]["predicted_seconds"]
    return measured[changed]["seconds"] / measured[plain]["seconds"], ours


def _steps(measured: dict[str, Any], predicted: dict[str, Any], errors: dict[str, float]) -> str:
    rows = [
        (
            name,
            f"{1e3 * step['seconds']:.1f}",
            f"{1e3 * predicted[name]['predicted_seconds']:.1f}",
            percent(errors[name]),
            f"{predicted[name]['kernel_seconds'] / predicted[name]['predicted_seconds']:.0%}",
            f"{predicted[name]['flops'] / 1e12:.2f}",
            f"{predicted[name]['bytes'] / 1e9:.0f}",
            f"{predicted[name]['kernels']:,}",
        )
        for name, step in measured.items()
    ]
    head = ("step", "measured ms", "predicted ms", "error", "the card", "TFLOP", "GB moved", "kernels")
    return table(head, rows)


def main() -> None:
    """Simulate what was measured, and write the page."""
    parser = argparse.ArgumentParser(prog="make times", description=__doc__)
    parser.add_argument("--only", metavar="NAME", help="print the workloads whose names begin so, and write nothing")
    only = parser.parse_args().only
    measured = json.loads((MEASURED / "steps.json").read_text())
    chosen = {name: step for name, step in measured.items() if name.startswith(only or "")}
    predicted = {name: predict(name, step["argv"]) for name, step in chosen.items()}
    text = page(chosen, predicted, len(json.loads((MEASURED / "micro.json").read_text())["kernels"]))
    if only is None:
        PAGE.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
