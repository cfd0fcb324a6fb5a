"""torch-preflight: `estimate --model` for an architecture that it knows by the script's name, else its `VRAMGuard`."""

import json
import subprocess
import sys
from pathlib import Path

import torch

from benchmarks.accuracy.workloads import Workload
from benchmarks.peers import settings
from benchmarks.peers.answers import RefusedError
from benchmarks.peers.fake_modules import to_meta
from benchmarks.peers.first_step import TrainingStep

GPU = "h100-80gb"


def predict(workload: Workload, step: TrainingStep) -> int:
    """Bytes reserved: the projected peak without the CUDA context that it adds.

    `VRAMGuard.accuracy` compares the same figure with `torch.cuda.max_memory_reserved()`.
    """
    return _by_name(_name_in(workload), step) or _guarded(step)


def _name_in(workload: Workload) -> str:
    words = workload.words
    return words[words.index("--model") + 1] if "--model" in words else ""


def _by_name(name: str, step: TrainingStep) -> int | None:
    """None for an architecture that the tool does not know."""
    if not name:
        return None
    command = Path(sys.executable).with_name("torch-preflight")
    options = ["--model", name, "--gpu", GPU, "--format", "json", *_options(step)]
    answer = json.loads(subprocess.run([command, "estimate", *options], capture_output=True, text=True).stdout)
    return answer["total_bytes"] - answer["breakdown"]["CUDA_context"] if answer["resolved"] else None


def _options(step: TrainingStep) -> list[str]:
    options = {
        "--batch-size": settings.batch_size(step),
        "--seq-len": settings.sequence_length(step),
        "--image-size": settings.image_size(step),
        "--dtype": _precision(step),
        "--optimizer": settings.optimizer_name(step, momentum="-momentum"),
    }
    given = [word for key, value in options.items() if value is not None for word in (key, str(value))]
    flags = {"--checkpointing": settings.is_checkpointed(step), "--flash": settings.uses_fused_attention(step)}
    return [*given, *(flag for flag, is_set in flags.items() if is_set)]


def _precision(step: TrainingStep) -> str:
    pure = {torch.bfloat16: "pure-bf16", torch.float16: "pure-fp16"}
    return "amp" if step.autocast_dtype else pure.get(settings.model_dtype(step), "fp32")


def _guarded(step: TrainingStep) -> int:
    """What `with VRAMGuard(model, ...)` projects for the model in hand, its activations measured on the meta device."""
    from torch_preflight import VRAMGuard

    if step.batch is None:
        raise RefusedError("its example input is one tensor; this model takes a list of images", is_applicable=False)
    guard = VRAMGuard(
        to_meta(step.model),
        optimizer=step.optimizers[0],
        max_vram="80GiB",
        batch_size=settings.batch_size(step),
        seq_len=settings.sequence_length(step),
        image_size=settings.image_size(step),
        precision=_precision(step),
        gradient_checkpointing=settings.is_checkpointed(step),
        flash_attention=settings.uses_fused_attention(step),
        example_input=torch.empty(tuple(step.batch.shape), dtype=step.batch.dtype, device="meta"),
    )
    with guard:
        report = guard.report
    if not report.breakdown.activations:
        raise RefusedError("says that it cannot estimate the activations of this model")
    return report.total - report.breakdown.cuda_context
