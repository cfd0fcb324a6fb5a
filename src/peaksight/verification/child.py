"""The process that runs a script and records its training: `python -m peaksight.verification.child [-m] SCRIPT ARGS`.

The variable PEAKSIGHT_JOB names the file with its job, so that launchers can start it as they start any script.
"""

import os
import runpy
import sys
import traceback
import warnings
from contextlib import ExitStack
from pathlib import Path

import msgspec
import torch

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.overlays.seeds import seed_generators
from peaksight.records.training import Job
from peaksight.verification.arithmetic import Arithmetic, keep_autocast_off, widen_inputs
from peaksight.verification.recorder import Recorder
from peaksight.verification.watching import watch

JOB_VARIABLE = "PEAKSIGHT_JOB"
SEED = 0


def main(words: list[str]) -> int:
    """Run the script that `words` name, and return its exit code."""
    job = msgspec.json.decode(Path(os.environ[JOB_VARIABLE]).read_bytes(), type=Job)
    is_module = words[0] == "-m"
    target, *args = words[is_module:]
    recorder = Recorder(job, target)
    watch(recorder)
    _seed()
    sys.argv = [target, *args]
    if not is_module:
        sys.path[0] = os.path.dirname(os.path.realpath(target))
    try:
        with ExitStack() as stack:
            recorder.applied = apply_changes(job.changes, stack.enter_context(Patches()))
            if job.double or job.masks != "own":
                stack.enter_context(Arithmetic(job))
            if job.double:
                keep_autocast_off()
                widen_inputs()
            _run(target, is_module=is_module)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        recorder.finish("failed" if code else "ended", f"the script exited with {error.code}" if code else "")
        return code
    except BaseException:
        traceback.print_exc()
        recorder.finish("failed", traceback.format_exc())
        return 1
    recorder.finish("ended")
    return 0


def _seed() -> None:
    """Give a script that does not seed its generators the same start each time."""
    seed_generators(SEED)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    warnings.filterwarnings("ignore", ".*deterministic.*")


def _run(target: str, *, is_module: bool) -> None:
    if is_module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(target, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
