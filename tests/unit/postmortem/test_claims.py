"""Figures in prose."""

import io
from pathlib import Path

import pytest

from peaksight.postmortem import read_log
from peaksight.postmortem.claims.equalities import check_equalities
from peaksight.postmortem.claims.prose import repaired
from peaksight.units import GIB

HEAD = "# Memory of the model\n\n- it is 16 GB\n- or 24 GB\n- or 32 GB\n- or 40 GB\n\n"


def checks(text):
    evidence = read_log(io.BytesIO((HEAD + text).encode()), "note")
    return [(check.name, check.holds) for check in evidence.claim_checks]


EQUATIONS = [
    ("(8, 64, 100) = 51,200 floats", True),
    ("(8, 64, 100) = 512,000 floats", False),
    ("(8, 512, 960) = 15.7 MB", True),
    ("(8, 512, 960) = 3.9 MB", False),
    ("(8 \u00d7 960 \u00d7 19, 64) = 145,920 \u00d7 64", True),
    ("5e-4 / 512 * 16 = 1.5625e-5", True),
    ("5e-4 / 512 * 16 = 1.5625e-4", False),
    ("14.44 GB allocated + 1.74 GB reserved = 16.18 GB", True),
    ("80GB - 61GB = 29GB", False),
    ("27,000 MB + 1 GB = 28.00 GB", True),
]


@pytest.mark.parametrize(("text", "holds"), EQUATIONS)
def test_an_equation(text, holds):
    """Of numbers, of sizes, and of a shape with its elements or bytes."""
    assert [holds] == [check.holds for check in check_equalities(text)]


@pytest.mark.parametrize("text", ["batch = 8", "4 GPUs = 8 total", "x = y + 2", "a[1] = 3", "def f(a=1, b=2): pass"])
def test_what_is_no_equation(text):
    """Code and settings are left alone."""
    assert list(check_equalities(text)) == []


OFTEN = "The run has 2,000 steps. Every 100 steps a sample is decoded, {}: 2000 / 100 = {} times.\n"
SAVED = "On 4 GPUs it decodes every 100 steps; skipping them in the warm-up saves about {} passes (steps 0-200).\n"
LISTS = [
    (OFTEN.format("not during the warm-up of 200", 20), ("schedule", False)),
    (OFTEN.format("after a warmup (steps 0-200)", 17), ("schedule", True)),
    (SAVED.format(800), ("schedule", False)),
    (SAVED.format(12), ("schedule", True)),
    ("Model: 6GB\nActivations: 10GB\nTotal: 16GB\n", ("total", True)),
    ("Model: 6GB\nActivations: 10GB\nTotal: 20GB\n", ("total", False)),
    ("| Part | Memory (GB) |\n|---|---|\n| Model | 6 |\n| Cache | 2-4 |\n| **Total** | 8-10 |\n", ("total", True)),
    ("Model: 6GB (bfloat16)\nOptimizer (AdamW): 6GB\n", ("adam-state", False)),
    ("Model: 6GB (bfloat16)\nOptimizer (AdamW): 12GB\n", ("adam-state", True)),
    ("Parameters: 1GB\nGradients: 18GB\n", ("gradients", False)),
    ("- Mistral-7B: 14 GB (fp16)\n", ("parameters", True)),
    ("- Mistral-7B: 28 GB (fp16)\n", ("parameters", False)),
    ("KV cache: 6GB for gpt2 at batch=1, seq_len=1024\n", ("kv-cache", False)),
    ("256 \u2192 196 (23% reduction)", ("percent", True)),
    ("256 \u2192 196 (33% reduction)", ("percent", False)),
    ("Trying to allocate: 1.34 GB\nOnly 5.35 GB free\n", ("free-but-refused", False)),
    ("| a | b |\n|---|---|\n| Batch | ~50% |\n| FP16 | ~50% |\n| Combined | ~60% |\n", ("reductions-together", False)),
    ("batch size: 8\ngradient accumulation: 2\neffective batch size: 12\n", ("effective-batch", False)),
    ("compilation memory is 20 GB", ("belief", False)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), LISTS, ids=lambda value: value[0][:20] if isinstance(value, tuple) else ""
)
def test_a_claim(text, expected):
    """Each relation, once where it holds and once where it does not."""
    assert expected in checks(text)


@pytest.mark.parametrize(
    "text",
    [
        OFTEN.format("also in the warm-up of 200", 20),
        OFTEN.format("not during the warm-up of 200", 20) + "Every 50 steps it saves.\n",
        "Not during the warm-up of 200: 2000 / 100 = 20 times.\n",
    ],
)
def test_a_schedule_that_is_not_told(text):
    """Near misses: the warm-up is not left out, there are two intervals, or none."""
    assert "schedule" not in dict(checks(text))


def test_a_log_is_no_prose():
    """A table of steps in a training log is not checked."""
    assert read_log(io.BytesIO(b"step 1: loss = 2 + 2 = 5, 3 GB memory\n" * 100), "log").claim_checks == ()


def test_letters_of_a_wrong_encoding_are_put_right():
    """As UTF-8 looks that was read as Windows-1252, Turkish or Macintosh."""
    for encoding in ("cp1252", "mac_roman"):
        assert repaired("\u2192 a".encode().decode(encoding)) == "\u2192 a"


def test_the_figures_of_a_claim():
    """GB is 10^9 in prose; ranges keep both ends."""
    evidence = read_log(io.BytesIO((HEAD + "Frozen part: ~5-10 GB\nCache: 1 GiB\n").encode()), "note")

    assert [("Frozen part", 5 * 10**9, 10**10), ("Cache", GIB, GIB)] == [
        (claim.label, claim.low_bytes, claim.high_bytes) for claim in evidence.claims
    ]


def test_no_claim_is_made_of_the_projects_own_pages():
    """docs/how-it-works.md is prose about memory, and right."""
    page = (Path(__file__).parents[3] / "docs" / "how-it-works.md").read_bytes()

    assert [check.text for check in read_log(io.BytesIO(page), "page").claim_checks if not check.holds] == []
