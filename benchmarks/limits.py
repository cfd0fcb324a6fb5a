"""`make limits`: what the largest models cost: seconds and host memory of a run that loads a checkpoint and trains.

The checkpoints have the names and shapes of Llama 2, in files of at most 10 GB, and holes where the weights would be.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.accuracy.workloads import ENVIRONMENT
from peaksight.units import GIB, KIB
from peaksight.virtual_gpu.weights.safetensors_files import write_without_data

SCRIPT = Path(__file__).with_name("finetune_checkpoint.py")
SHARD_BYTES = 10**10
SIZES = {
    "7B": {},
    "70B": {
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
    },
}


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="make limits", description=__doc__)
    parser.add_argument("--only", choices=SIZES, help="one size (default: all)")
    only = parser.parse_args().only
    for size in [only] if only else SIZES:
        with TemporaryDirectory() as directory:
            num_bytes = save_checkpoint(Path(directory), LlamaConfig(dtype="bfloat16", **SIZES[size]))
            loading, seconds, host_bytes = measure(directory)
        print(
            f"{size}: checkpoint of {num_bytes / 1e9:.0f} GB {loading}, {seconds:.0f} s in all, "
            f"{host_bytes / GIB:.2f} GiB of host memory (torch {torch.__version__})"
        )


def save_checkpoint(directory: Path, config: LlamaConfig) -> int:
    """Write what `save_pretrained` would, but for the weights' data; gives the bytes of the weights."""
    with torch.device("meta"):
        weights = LlamaForCausalLM(config).bfloat16().state_dict()
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(directory)
    shards: list[dict[str, torch.Tensor]] = [{}]
    for name, tensor in weights.items():
        if sum(t.nbytes for t in shards[-1].values()) + tensor.nbytes > SHARD_BYTES:
            shards.append({})
        shards[-1][name] = tensor
    weight_map = {}
    for i, shard in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        write_without_data(shard, directory / file, {"format": "pt"})
        weight_map |= dict.fromkeys(shard, file)
    num_bytes = sum(tensor.nbytes for tensor in weights.values())
    index = {"metadata": {"total_size": num_bytes}, "weight_map": weight_map}
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    return num_bytes


def measure(directory: str) -> tuple[str, float, int]:
    """What the script says of its loading; seconds and largest resident size of `peaksight run` on a large card."""
    command = [sys.executable, "-m", "peaksight", "run", "--memory", "2048GiB", "--steps", "2", str(SCRIPT), directory]
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{SCRIPT} gave no report.")
    loading = next(line for line in printed.splitlines() if line.startswith("loaded"))
    return loading, time.perf_counter() - started, usage.ru_maxrss * KIB


if __name__ == "__main__":
    main()
