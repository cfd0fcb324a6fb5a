"""The page of `peaksight read`, as a person sees it."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from golden_files import compare_golden
from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log
from peaksight.reporting.reading import render_reading

REPORTS = Path(__file__).parents[2] / "data" / "oom-reports" / "reports.jsonl"
TEXTS = {
    report["id"]: "\n".join(report["error_text"])
    for report in map(json.loads, REPORTS.read_text(encoding="utf-8").splitlines())
}
TRAIN = """\
$ torchrun --nproc-per-node 2 train.py --batch 4
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/me/train.py", line 42, in <module>
[rank1]:     loss = model(batch, labels=labels).loss
[rank1]:   File "/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", line 1209, in forward
[rank1]:     logits = logits.float()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 1 has a total capacity of 23.65 \
GiB of which 1.08 GiB is free. Including non-PyTorch memory, this process has 22.56 GiB memory in use. Of the \
allocated memory 21.40 GiB is allocated by PyTorch, and 700.00 MiB is reserved by PyTorch but unallocated.
"""
NOTE = """\
# Why it runs out of memory

- batch size: 8
- card: RTX 4090 (24GB)
- it fails at batch 8
- memory is 24GB, and 16GB would be enough

Model: 6GB (bfloat16)
Optimizer (AdamW): 6GB
Activations (8, 512, 960) = 3.9 MB
Total: 14GB
"""
KILLED = "step 10 loss 2.0\nKilled\n"


def page(text, width=100):
    stream = io.StringIO()
    render_reading(explain(read_log(io.BytesIO(text.encode()), "train.log")), Console(file=stream, width=width))
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("container", TEXTS["oth-02"]),
        ("two-ranks", TRAIN),
        ("xla", TEXTS["jax-01"]),
        ("note", NOTE),
        ("killed", KILLED),
    ],
)
def test_the_page(name, text):
    """Read by a person before it was taken."""
    compare_golden(page(text), f"read-{name}.txt")


def test_what_happened_comes_first():
    """Then why, then what to do."""
    lines = page(TRAIN).split("\n")

    assert lines[0].startswith("Card 1 of rank 1 ran out of memory at train.py:42 in the forward, asked for 3.91 GiB")
    assert lines.index("Why, probably") < lines.index("Try first") < lines.index("Run next, without a GPU")
    assert "peaksight run --memory 23.65GiB torchrun --nproc-per-node 2 train.py --batch 4" in page(TRAIN)


def test_nothing_is_run_next_for_the_hosts_memory():
    """A simulated card says nothing of it."""
    assert "Run next" not in page(KILLED)
    assert "host" in page(KILLED)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_any_width(width):
    """No line is longer than the terminal."""
    assert all(len(line) <= min(width, 110) for line in page(TRAIN, width).split("\n"))
