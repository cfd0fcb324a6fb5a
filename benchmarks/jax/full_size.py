"""Pi0 at its full size, 3.2 billion parameters at batch 32: what it costs to predict it, by XLA and by liveness.

`python -m benchmarks.jax.full_size` prints a table. Each number comes from a process of its own: seconds of the clock
and of the processor without imports, and the most host memory of the whole process and its compiler.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

TRUTH = Path(__file__).parents[1] / "truth" / "jax"
# Widths, depths and vocabulary of PaliGemma, of its action expert and of SigLIP (whose MLP is a gated one of its size).
PI0 = {
    "L": 18,
    "W": (2048, 1024),
    "M": (16384, 4096),
    "N": 8,
    "K": 1,
    "H": 256,
    "V": 257152,
    "IW": 1152,
    "IM": 2869,
    "IL": 27,
    "P": 588,
    "B": 32,
}
CONFIGS = {
    "everything trained": {},
    "frozen prefix, expert and images trained": {"variant": "dex", "train": ("exp", "img")},
    "frozen prefix, expert trained": {"variant": "dex", "train": ("exp",)},
    "init from a float32 checkpoint": {"variant": "dex", "train": ("exp",), "init": True},
}
TIERS = ("XLA", "liveness")

HEAD = """| step | by | predicted | seconds | of the processor | host memory |
|---|---|---|---|---|---|"""


def main() -> None:
    """Predict each configuration by both, or one of them by one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=2, metavar=("CONFIG", "TIER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(_predict(*arguments.one)))
        return
    print(HEAD)
    for row in rows():
        print(row, flush=True)


def rows() -> Iterator[str]:
    """A row of the table for each configuration and tier."""
    for config in CONFIGS:
        for tier in TIERS:
            command = [sys.executable, "-m", "benchmarks.jax.full_size", "--one", config, tier]
            environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            sizes = f"{found['peak_bytes'] / 1e9:.2f} GB | {found['seconds']:.1f} | {found['processor_seconds']:.1f}"
            yield f"| {config} | {tier} | {sizes} | {found['host_bytes'] / 1e9:.2f} GB |"


def _predict(config: str, tier: str) -> dict[str, float]:
    """The peak on an H200, and what it took to say so."""
    sys.path.insert(0, str(TRUTH))
    import pi0_like

    import jax
    import peaksight.jax
    from peaksight.jax.compiler import COMPILER
    from peaksight.jax.liveness import liveness

    jax.devices()
    function, shapes, donated = pi0_like.build(pi0_like.D | PI0 | CONFIGS[config])
    started, used = time.perf_counter(), _processor_seconds()
    if tier == "liveness":
        traced = jax.jit(function, donate_argnums=donated).trace(*shapes)
        flags = [info.donated for info in jax.tree.leaves(traced.args_info)]
        peak_bytes = liveness(traced.jaxpr, donated=flags).peak_bytes
    else:
        peak_bytes = peaksight.jax.predict(function, *shapes, donate_argnums=donated, gpu="h200").peak.allocated_bytes
    seconds = time.perf_counter() - started
    COMPILER.close()
    return {
        "peak_bytes": peak_bytes,
        "seconds": seconds,
        "processor_seconds": _processor_seconds() - used,
        "host_bytes": 1024 * sum(each.ru_maxrss for each in _usages()),
    }


def _processor_seconds() -> float:
    return sum(each.ru_utime + each.ru_stime for each in _usages())


def _usages() -> tuple[resource.struct_rusage, resource.struct_rusage]:
    """Of this process, and of its children that have ended."""
    return resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)


if __name__ == "__main__":
    main()
