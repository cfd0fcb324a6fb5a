"""What to run next: the card that the log is about, and what was typed."""

import io

import pytest

from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log

MESSAGE = (
    "{kind} out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of {capacity} GiB of which 1.00 GiB "
    "is free. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but "
    "unallocated.\n"
)
SMI = "|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |\n"


def run_next(before, capacity="79.15", kind="CUDA"):
    log = before + "\n" + MESSAGE.format(kind=kind, capacity=capacity)
    return explain(read_log(io.BytesIO(log.encode()), "train.log")).run_next.removeprefix("peaksight run ")


NAMED = [
    (SMI, "39.49", "--gpu a100-40gb"),
    ("training on Tesla T4 with fp16", "14.56", "--gpu t4"),
    ("device: NVIDIA H100 80GB HBM3", "79.18", "--gpu h100-80gb"),
    ("device: A100-SXM4-40GB", "39.49", "--gpu a100-40gb"),
    ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "19.50", "--gpu a100-40gb:3g.20gb"),
]


@pytest.mark.parametrize(("before", "capacity", "options"), NAMED, ids=lambda value: value[:30])
def test_a_card_that_the_log_names(before, capacity, options):
    """As nvidia-smi pads it, as torch prints it, as older drivers and people write it."""
    assert run_next(before, capacity).startswith(options)
    assert run_next(before, capacity).endswith("train.py")


def test_a_size_that_another_driver_prints():
    """The card is the named one, its size is what the message says."""
    assert run_next("NVIDIA GeForce RTX 4090", "23.65") == "--gpu rtx-4090 --memory 23.65GiB train.py"
    assert run_next("NVIDIA GeForce RTX 4090", "23.52") == "--gpu rtx-4090 train.py"


def test_names_that_decide_nothing():
    """A card of another size, two cards that it may be, a name sold in two sizes, a driver."""
    assert run_next("Tesla T4", "39.49") == "--memory 39.49GiB train.py"
    assert run_next("RTX 4090 or RTX 3090 Ti", "23.54") == "--memory 23.54GiB train.py"
    assert run_next("NVIDIA GeForce RTX 4060 Ti", "15.57") == "--memory 15.57GiB train.py"
    assert run_next("NVIDIA-SMI 535.104.05  NVIDIA driver 535", "23.65") == "--memory 23.65GiB train.py"


def test_a_size_that_one_card_has():
    """And no other comes within what drivers change; a card of AMD is none of them."""
    assert run_next("", "10.57") == "--gpu rtx-2080ti train.py"
    assert run_next("", "178.36") == "--gpu b200 train.py"
    assert run_next("", "79.15") == "--memory 79.15GiB train.py"
    assert run_next("", "10.57", kind="HIP") == "--memory 10.57GiB train.py"


TYPED = [
    ("$ python train.py --batch 8 2>&1 | tee train.log", "python train.py --batch 8"),
    ("+ CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=4 WANDB_MODE=offline python -u train.py --lr 1e-4", None),
    ("torchrun --nproc-per-node=8 \\\n  train.py \\\n  --batch 8", "torchrun --nproc-per-node=8 train.py --batch 8"),
    ("accelerate launch --config_file a.yaml train.py", "accelerate launch --config_file a.yaml train.py"),
    ("$ python -m pkg.train --batch 8; date", "python -m pkg.train --batch 8"),
    ("deepspeed --num_gpus 8 train.py --lr 1", "train.py --lr 1"),
    ("python -m bitsandbytes", "train.py"),
    ("|    0   N/A  N/A   2345      C   python train.py   2323MiB |", "train.py"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "command"), TYPED, ids=lambda value: (value or "")[:30])
def test_what_was_typed(before, command):
    """With the script's own arguments, without what the shell does."""
    assert run_next(before) == f"--memory 79.15GiB {command or 'python -u train.py --lr 1e-4'}"
