"""On a machine with a GPU: `python benchmarks/systems/measure_jax.py FILE` measures pi0_dex as it was predicted.

Nothing of peaksight is needed. Each run has a process of its own: without a limit and without a pool, so that the most
that was in use is that of arrays and programs, and some a second time, with the pool that JAX takes on the note's card.
"""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.systems.probes import answer_of

HERE = Path(__file__).parent
SCRIPT = HERE.parents[1] / "examples" / "systems" / "pi0_dex" / "train.py"
PREDICTED = HERE / "predicted_jax.json"
SECONDS = 120
PROBE = """
import json, runpy, sys, traceback
from pathlib import Path
out, script, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
sys.path[0] = str(Path(script).parent)
import jax
device, jit, calls = jax.devices()[0], jax.jit, []

def noting(function=None, **options):
    if function is None:
        return lambda given: noting(given, **options)
    jitted, name = jit(function, **options), function.__name__
    def call(*args):
        result = jax.block_until_ready(jitted(*args))
        calls.append([name, device.memory_stats()["peak_bytes_in_use"]])
        return result
    return call

jax.jit, oom = noting, None
try:
    runpy.run_path(script, run_name="__main__")
except jax.errors.JaxRuntimeError as error:
    own = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == Path(script).parent]
    steps = sum(name == "train_step" for name, _ in calls)
    oom = {"at": f"{Path(own[-1].filename).name}:{own[-1].lineno}", "step": steps + 1, "message": str(error)[:300]}
stats = device.memory_stats()
peaks = {"allocated_bytes": stats["peak_bytes_in_use"], "limit_bytes": stats.get("bytes_limit"), "oom": oom}
about = {"card": device.device_kind, "jax": jax.__version__, "calls": [each for each in calls if each[0] != "draw"]}
Path(out).write_text(json.dumps(peaks | about))
"""


def main(file: Path) -> None:
    """Measure every run that was predicted; what is done is written at once."""
    predicted = json.loads(PREDICTED.read_text())
    found: dict = {"measured_on": str(date.today())}
    for name, each in predicted.items():
        found[name] = {"peak": run(each["words"], {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})}
        if each.get("limited"):
            fraction = each["limited"]["usable_bytes"] / total_bytes()
            found[name]["limited"] = run(each["words"], {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{fraction:.5f}"})
        file.write_text(json.dumps(found, indent=1) + "\n")
        print(name, found[name], flush=True)


def run(words: list[str], settings: dict[str, str]) -> dict:
    """What one process reached, or the error that it ended with."""
    return answer_of(PROBE, [str(SCRIPT), *words], settings, SECONDS)


def total_bytes() -> int:
    """The memory of the card."""
    command = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]) << 20


if __name__ == "__main__":
    main(Path(sys.argv[1]))
