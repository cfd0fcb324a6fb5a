"""Budgets and measures in prose: what is not there yet, what is left out, in place already, or without effect."""

import io

import pytest

from peaksight.postmortem import read_log
from peaksight.postmortem.claims.equalities import check_equalities
from peaksight.units import GIB

HEAD = "# Memory of the model\n\n- it is 1 GB\n- or 2 GB\n- or 3 GB\n- or 4 GB\n\n"
SUM = "Parameters: 6GB\nGradients: 6GB\nAdamW: 12GB\nActivations: 12GB\nTotal: 36GB\n\n"
OF_TWO = "- Activations (batch=4, 2048 tokens): 30GB\n- Weights: 30GB\n- **Total**: 60GB\n\n"
FROZEN = "The frozen tower (2.3B params) and a head (300M params).\n\n"
ALREADY = "## Mixed precision\n\n- Already enabled in the config\n\n| What | Saved |\n|---|---|\n"
DOWN = "- Model: 5 GB\n- Forward: 5-10 GB (down from 20-25 GB)\n- **Total: 10-15 GB** (down from {} GB)\n\n"
HALF = "Model: 6GB (bfloat16)\n" + SUM.split("\n", 1)[1] + "Savings:\n\n- bfloat16: {}GB saved\n- Total: {}GB saved\n\n"
BLOCKS = "Attention in 12 blocks. Gradient checkpointing: {} of {}\n\n"
CACHE = "Parameters: 6GB\nKV cache: {}GB\n\n## KV cache\n\nIt costs 20-30% of model size.\n"


def checks(text):
    evidence = read_log(io.BytesIO((HEAD + text).encode()), "note")
    return {check.name: (check.holds, check.text) for check in evidence.claim_checks}


FOUND = [
    ("OOM on the first forward pass, on a 24 GB card.\n" + SUM, "not-there-yet", False, "at most 18 GB exist then"),
    ("OOM on the first forward pass, on a 20 GB card.\n" + SUM, "not-there-yet", True, "beside a card of 20 GB"),
    ("It fails during initialization of a GPU with 40-48 GB.\n" + SUM, "not-there-yet", False, "at most 18 GB"),
    ("OOM in the first forward: 30 GB allocated.\n\n" + SUM, "rows-and-measured", False, "12 GB are in no row"),
    ("OOM in the first forward: 18.5 GB allocated.\n\n" + SUM, "rows-and-measured", True, "come to 18 GB"),
    (SUM, "left-out", True, "a temporary as large as what it trains, 6 GB"),
    (OF_TWO + "## Smaller batch\n\nIt cuts memory by ~50%.\n", "half-the-batch", False, "it saves 25 %"),
    ("## Smaller batch\n\n**Impact**: 50% memory reduction\n", "belief", False, "only activations do"),
    ("| What | Memory |\n|---|---|\n| Batch size 8 to 4 | ~50% |\n", "belief", False, "only activations do"),
    ("Try `batch_size=1` (currently using `batch_size=1`)\n", "already-in-place", False, "nothing is saved"),
    (ALREADY + "| Mixed precision | ~50% |\n",
     "already-in-place", False, "not saved from that"),
    ("Even after removing the heads (saving 9.65 GB), it still OOMs.\n", "tried", True, "the heads (saving 9.65 GB)"),
    (DOWN.format("20-40"), "before", False, "the same rows come to 25.00 to 30.00 GB; the text says 20-40 GB"),
    (DOWN.format("25-30"), "before", True, "the text says 25-30 GB"),
    (HALF.format(6, 6), "half-precision", False, "by the rows of 36GB 24 GB are saved beside float32"),
    (BLOCKS.format("~50%", "activations"), "checkpointing-share", False, "at least 86 % less of theirs"),
    ("Batch size: 2 per device (4 GPUs = 8 total)\n", "per-device", True, "2 on each of 4 is 8 in a step"),
    ("Batch size: 2 per device (4 GPUs = 6 total)\n", "per-device", False, "the text says 6"),
    ("Each step processes 8 samples: 20 samples across 2000 steps = 0.125%\n", "samples", True, "16,000 samples"),
    ("Each step processes 8 samples: 20 samples across 2000 steps = 1%\n", "samples", False, "0.125 %"),
    ("For 448x448 images with patch size 16, we have 785 tokens\n", "tokens", True, "784 patches of 16"),
    ("For 448x448 images with patch size 16, we have 1570 tokens\n", "tokens", False, "784 patches of 16"),
    ("batch_size: int = 2\ngradient_accumulation_steps: int = 8\n\nThis keeps the effective batch size of 16.\n",
     "effective-batch", True, "batch 2 x 8 accumulated = 16"),
    ("Each needs workspace memory, not freed between calls.\n", "belief", False, "goes back to the allocator"),
    ("We tried a batch of 1, but it still fails.\n", "tried", True, "a batch of 1"),
    ("Total: 30-45 GB\n\nThis should fit cards with 40-48 GB memory.\n", "fits-the-card", False, "45 GB do not"),
    ("Total: 30-38 GB\n\nThis should fit cards with 40-48 GB memory.\n", "fits-the-card", True, "it does"),
    (FROZEN + "Gradients: 10-15 GB\n", "gradients-of-frozen", False, "at most 1.2 GB"),
    (CACHE.format(6), "share-of-model", False, "1.2 to 1.8 GB"),
    (CACHE.format(1.5), "share-of-model", True, "1.2 to 1.8 GB"),
    ("It is quadratic.\nInput: 256 -> 196\nSaves 40-50% for attention\n", "quadratic", True, "41 %"),
    ("It is quadratic.\nInput: 256 -> 196\nSaves 70% for attention\n", "quadratic", False, "41 %"),
    ('"--batch-size", "6", "--gradient-accumulation-steps", "21", # effective batch size ~128\n',
     "effective-batch", True, "126"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "holds", "words"), FOUND)
def test_what_is_found(text, name, holds, words):
    found = checks(text)[name]

    assert found[0] is holds
    assert words in found[1]


NEAR_MISSES = [
    ("It fails in the forward of a 24 GB card.\n" + SUM, "not-there-yet"),  # of any step: state may be there
    ("OOM on the first forward pass.\n" + SUM, "not-there-yet"),  # no card is named
    (SUM + "The optimizer is fused.\n", "left-out"),
    (SUM.replace("AdamW", "SGD"), "left-out"),
    ("## Smaller batch\n\nIt cuts memory by ~30%.\n", "belief"),
    ("```\n# batch_size\n```\nIt cuts memory by ~50%.\n", "belief"),  # a comment of code is no heading
    ("Try `batch_size=1` (currently using `batch_size=2`)\n", "already-in-place"),
    (ALREADY + "| Checkpointing | ~50% |\n",
     "already-in-place"),
    ("After removing the heads (saving 9.65 GB), it runs.\n", "tried"),
    (FROZEN + "Gradients: 1 GB\n", "gradients-of-frozen"),
    (DOWN.format("25-30").replace(" (down from 20-25 GB)", ""), "before"),  # only the total was another one
    (HALF.format(24, 24), "half-precision"),
    (BLOCKS.format("~90%", "activations"), "checkpointing-share"),
    (BLOCKS.format("~30%", "memory"), "checkpointing-share"),  # of all memory, of which most may be parameters
    (BLOCKS.format("~30%", "slower training"), "checkpointing-share"),
    (BLOCKS.format("~50%", "activations").replace("12 blocks", "2 blocks"), "checkpointing-share"),
    ("20 samples across 2000 steps = 1%\n", "samples"),  # how many a step has is not said
    ("The tower (2.3B params) and a head (300M params).\n\nGradients: 10-15 GB\n", "gradients-of-frozen"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name"), NEAR_MISSES)
def test_what_is_not(text, name):
    assert name not in checks(text)


SENTENCES = [
    ("8 x 12 x 785 x 785 in fp16, is 118 MB", True),
    ("8 x 12 x 785 x 785 in fp32 takes about 118 MB", False),
    ("[8, 512, 960] is 15.7 MB", True),
    ("5.7 + 38.3 = 44 GB", True),
    ("131072 * 4096 * 2 = 1 GiB", True),
    ("131072 * 4096 * 2 = 3 GiB", False),
    ("10240*24000*8/2**30 = 1.831", True),
    ("10240*24000*8/2^30 = 18.31", False),
    ("**8** * 12 = 96", True),
]


@pytest.mark.parametrize(("text", "holds"), SENTENCES)
def test_a_size_in_a_sentence(text, holds):
    """With its type, of a shape, in the unit of all, or with the bytes of an element as the last factor."""
    assert [holds] == [check.holds for check in check_equalities(text)]


@pytest.mark.parametrize("text", ["x^2*4 = 267 GiB", "20/16000 = 0.125%", "layers 3-4 are 20 GB", "batch 8 is 4 GB"])
def test_what_is_no_calculation(text):
    """A part of one that begins before, a percentage, a range."""
    assert list(check_equalities(text)) == []


def test_sizes_in_sentences_are_claims():
    """Beside rows, and cards too."""
    text = "The decomposition takes 7.5 GB for the eigenvectors of each step. It ran on a 24 GB card.\nCache: 1 GiB\n"
    evidence = read_log(io.BytesIO((HEAD + text).encode()), "note")

    found = {claim.label: claim.low_bytes for claim in evidence.claims}
    assert found == {"Cache": GIB, "eigenvectors of each step": 7_500_000_000, "card": 24_000_000_000}
