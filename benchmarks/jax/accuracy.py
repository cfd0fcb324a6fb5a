"""Compares predictions with what programs under JAX took on real cards; writes docs/jax-accuracy.md.

`make accuracy-jax` runs it where the release of the measurements is installed. Each program is predicted in a process
of its own, because it compiles for a minute on two cores.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.jax import full_size

HERE = Path(__file__).parent
TRUTH = HERE.parent / "truth" / "jax"
PAGE = HERE.parents[1] / "docs" / "jax-accuracy.md"

_HEAD = """# JAX: predicted and measured

What `peaksight run` and `peaksight.jax.predict` say against the most that JAX had in use on a real card
(`memory_stats()["peak_bytes_in_use"]`), without preallocation. This page is the output of `make accuracy-jax`.

The first programs are train steps of a model with two experts (`benchmarks/truth/jax`); the last are the scripts of
`benchmarks/jax`, which were predicted before they were measured (`predicted.jsonl`). `dex_frozen_sgearly_unroll` and
`dex_imgtrain_unroll` are unrolled with `prevent_cse=False`.

| program | card | jax | measured | predicted with | predicted | error |
|---|---|---|---|---|---|---|"""


_PLANS = """
Of a program with many convolutions JAX's peak is that of compiling it: XLA times the algorithms of cuDNN with
workspaces of gigabytes, as far as the card has room for them, and keeps one that needs little. `unet.py` is such a
program: the most that was ever in use is no need of its training, which is its state and this:

| program | card | temporary memory of `train_step` as planned on the card | predicted | error |
|---|---|---|---|---|"""

_FULL_SIZE = """
## Pi0 at its full size

3.2 billion parameters, batch 32, on an H200: what `peaksight.jax.predict` says and what it costs, by XLA's compiler and
by liveness alone. Seconds of the clock and of the processor without imports; host memory is that of the process and of
its compiler. The machine of {cores} cores had a load of {load:.0f}. `python -m benchmarks.jax.full_size` prints it.

{table}"""


def main() -> None:
    """Predict everything that was measured, or only the programs named, and write the page where it was all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ.update(JAX_PLATFORMS="cpu", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    if arguments.one:
        print(_predict(arguments.one))
        return
    rows = [_HEAD]
    for row in _rows(arguments.programs):
        print(row, flush=True)
        rows.append(row)
    if not arguments.programs:
        rows += [_PLANS, *_plans()]
        table = "\n".join([full_size.HEAD, *full_size.rows()])
        rows.append(_FULL_SIZE.format(cores=os.cpu_count(), load=os.getloadavg()[2], table=table))
        PAGE.write_text("\n".join(rows) + "\n", encoding="utf-8")


def _rows(programs: list[str]) -> Iterator[str]:
    for line in (TRUTH / "measured.jsonl").read_text().splitlines():
        measured = json.loads(line)
        name = measured["config"]
        if not programs or name in programs:
            command = [sys.executable, "-m", "benchmarks.jax.accuracy", "--one", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            release, predicted = done.stdout.split()[-2:]
            yield _row(name, measured["backend"], measured["jax"], measured["peak"], release, int(predicted))
    for row in _scripts():
        if not programs or row["argv"][0] in programs:
            release, peak = row["jax"], row["measured_peak_bytes"]
            yield _row(" ".join(row["argv"]), row["card"], release, peak, release, row["predicted_peak_bytes"])


def _predict(name: str) -> str:
    """The release, and the bytes that a program of `pi0_like.py` is predicted to take."""
    sys.path.insert(0, str(TRUTH))
    import pi0_like

    import jax
    import peaksight.jax

    function, shapes, donated = pi0_like.build(pi0_like.D | pi0_like.CONFIGS[name])
    report = peaksight.jax.predict(function, *shapes, donate_argnums=donated, gpu="h200")
    return f"{jax.__version__} {report.peak.allocated_bytes}"


def _scripts() -> Iterator[dict]:
    """What was measured of each script, with what had been predicted."""
    predicted = [json.loads(line) for line in (HERE / "predicted.jsonl").read_text().splitlines()]
    for line in (HERE / "measured.jsonl").read_text().splitlines():
        measured = json.loads(line)
        before = next(row for row in predicted if row["argv"] == measured["argv"])
        yield {**measured, **{key: before[key] for key in ("predicted_peak_bytes", "programs")}}


def _plans() -> Iterator[str]:
    """What XLA planned for training steps on the card, where that was kept, with what was predicted."""
    for row in _scripts():
        if "planned_on_card" in row:
            planned, predicted = (row[key]["train_step"]["temporary_bytes"] for key in ("planned_on_card", "programs"))
            sizes = f"{planned / 1e9:.3f} GB | {predicted / 1e9:.3f} GB | {100 * (predicted / planned - 1):+.1f} %"
            yield f"| `{' '.join(row['argv'])}` | {row['card']} | {sizes} |"


def _row(name: str, card: str, release: str, measured: int, with_release: str, predicted: int) -> str:
    sizes = f"{measured / 1e9:.3f} GB | jax {with_release} | {predicted / 1e9:.3f} GB"
    return f"| `{name}` | {card} | {release} | {sizes} | {100 * (predicted / measured - 1):+.1f} % |"


if __name__ == "__main__":
    main()
