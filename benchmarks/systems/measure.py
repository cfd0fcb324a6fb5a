"""On a machine with a GPU: `python benchmarks/systems/measure.py FILE [NAME...]` measures what was predicted.

Nothing of peaksight is needed. Each variant runs twice, in a process of its own: with what the note's card gives, as
`predicted.json` has it, and without a limit. A run that fits is not limited twice.
"""

import argparse
import json
import sys
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.systems.cases import PREDICTED, Case, all_cases
from benchmarks.systems.probes import answer_of

ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
PORT = "29611"
PROBE = """
import json, runpy, sys, traceback
from pathlib import Path
out, limit, script, *sys.argv[1:] = sys.argv[1:]
sys.argv[0] = script
sys.path[0] = str(Path(script).parent)
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
if int(limit):
    torch.cuda.set_per_process_memory_fraction(int(limit) / torch.cuda.get_device_properties(0).total_memory)
steps = []
register_optimizer_step_post_hook(lambda *_: steps.append(torch.cuda.max_memory_allocated()))
oom = None
try:
    runpy.run_path(script, run_name="__main__")
except torch.OutOfMemoryError as error:
    own = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == Path(script).parent]
    oom = {"at": f"{Path(own[-1].filename).name}:{own[-1].lineno}", "step": len(steps) + 1, "message": str(error)[:300]}
peaks = {"allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved()}
retries = torch.cuda.memory_stats()["num_alloc_retries"]
Path(out).write_text(json.dumps(peaks | {"steps": len(steps), "retries": retries, "oom": oom}))
"""


def main() -> None:
    """Measure all that is on a card, or what is named; what is done is written at once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--timeout", type=float, default=90, help="seconds that each run may take (default: 90)")
    options = parser.parse_args()
    predicted = json.loads(PREDICTED.read_text())
    found: dict = {}
    for case in all_cases():
        if case.name not in predicted or (options.names and case.name not in options.names):
            continue
        found[case.name] = {}
        for run in (name for name, each in case.runs.items() if each.on_card and name in predicted[case.name]):
            found[case.name][run] = about() | measure(case, run, predicted[case.name][run], options.timeout)
            options.file.write_text(json.dumps(found, indent=1) + "\n")
            print(case.name, run, found[case.name][run], flush=True)


def about() -> dict:
    """What is measured on, and when."""
    import torch

    return {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "measured_on": str(date.today())}


def measure(case: Case, run: str, predicted: dict, timeout: float) -> dict:
    """The run below the limit, and, where that fails, without one; no peak where the card itself is too small."""
    limited = child(case.script, case.argv(run), predicted["usable_bytes"], timeout)
    if not limited.get("oom"):
        return {"limited": limited, "peak": limited}
    unlimited = child(case.script, case.argv(run), 0, timeout)
    return {"limited": limited} if unlimited.get("oom") else {"limited": limited, "peak": unlimited}


def child(script: Path, argv: list[str], limit_bytes: int, timeout: float) -> dict:
    """The peaks of one process, and where it ran out of memory; or the error that it ended with."""
    settings = {**ONE_RANK, "MASTER_PORT": PORT, "HF_HUB_OFFLINE": "1"}
    return answer_of(PROBE, [str(limit_bytes), str(script), *argv], settings, timeout)


if __name__ == "__main__":
    main()
