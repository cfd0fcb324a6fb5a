"""alloc: `alloc ghost FILE`, where the file holds the model, as its documentation advises."""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from benchmarks.accuracy.workloads import Workload
from benchmarks.peers import settings
from benchmarks.peers.answers import RefusedError
from benchmarks.peers.fake_modules import to_meta
from benchmarks.peers.first_step import TrainingStep
from peaksight.units import GIB

MODEL_FILE = Path(__file__).with_name("alloc_model.py")
IN_HAND: list[torch.nn.Module] = []


def predict(_: Workload, step: TrainingStep) -> int:
    """Bytes reserved, to 0.01 GiB: its total has a share for fragmentation."""
    IN_HAND.append(to_meta(step.model))
    length = settings.sequence_length(step)
    options = ["--batch-size", str(settings.batch_size(step)), *(["--seq-length", str(length)] if length else [])]
    answer = json.loads(_ghost([str(MODEL_FILE), "--json", "--no-config", *options]))
    if not answer.get("total_gb"):
        raise RefusedError(answer.get("error") or "gives a total of 0.00 GiB")
    return round(answer["total_gb"] * GIB)


def _ghost(arguments: Sequence[str]) -> str:
    """What `alloc ghost` prints, run in this process, its child that imports the file too: both are forks already."""
    from alloc import model_extractor
    from alloc.cli import app

    printed = StringIO()
    with patch.object(model_extractor.subprocess, "run", _extract_here), redirect_stdout(printed), suppress(SystemExit):
        app(["ghost", *arguments])
    return printed.getvalue()


def _extract_here(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
    """`python -m alloc.extractor_runner RESULT FILE`."""
    from alloc import extractor_runner

    with patch.object(sys, "argv", ["extractor_runner", *command[3:]]), suppress(SystemExit):
        extractor_runner.main()
    return subprocess.CompletedProcess(command, 0)
