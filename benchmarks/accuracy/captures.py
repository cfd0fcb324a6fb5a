"""Captures of the workloads: what the tools here need that the command's report leaves out."""

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from typing import Any

from benchmarks.accuracy.workloads import ENVIRONMENT, GPU, SCRIPTS, TORCH, Workload
from peaksight.gpus import find_card
from peaksight.records import Capture, ScriptCommand


def capture(workload: Workload, **options: Any) -> Capture:
    """Simulate `workload` in a process of its own, on the card and the build that it was measured on.

    `options` are those of `peaksight.virtual_gpu.simulate`.
    """
    os.environ.update(ENVIRONMENT)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_simulate, workload.words, options).result()


def _simulate(words: tuple[str, ...], options: dict[str, Any]) -> Capture:
    from peaksight.virtual_gpu import simulate

    os.chdir(SCRIPTS)
    command = ScriptCommand(target=words[0], args=words[1:])
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        return simulate(command, card=find_card(GPU), device_rules=TORCH, **options)
