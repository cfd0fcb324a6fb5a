"""Captures of the workloads: what the tools here need that the command's report leaves out."""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from typing import Any

from benchmarks.accuracy.workloads import ENVIRONMENT, GPU, TORCH, Workload
from peaksight.gpus import find_card, room_on
from peaksight.records import Capture, ScriptCommand

ROOM = room_on(find_card(GPU))


def capture(workload: Workload, *, settings: str = "", **options: Any) -> Capture:
    """Simulate `workload` in a process of its own, on the card and the build that it was measured on.

    `settings` are those of PYTORCH_CUDA_ALLOC_CONF, `options` those of `peaksight.virtual_gpu.simulate`.
    """
    os.environ.update(ENVIRONMENT)
    context = get_context("forkserver")
    context.set_forkserver_preload(["peaksight.virtual_gpu"])
    with ProcessPoolExecutor(1, mp_context=context) as process:
        return process.submit(_simulate, workload, settings, options).result()


def _simulate(workload: Workload, settings: str, options: dict[str, Any]) -> Capture:
    from peaksight.virtual_gpu import simulate

    os.chdir(workload.directory)
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings
    command = ScriptCommand(target=workload.words[0], args=workload.words[1:])
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        return simulate(command, room_on(find_card(workload.gpu)), device_rules=TORCH, **options)[0]
