"""flash_attn where it is not installed: its names, and the memory that its source says."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("flash_attn") is not None, reason="flash_attn is installed"),
]

# 4 sequences of 2,048 words, 16 heads of 64: 16 MiB in half precision, 0.5 MiB of statistics in single precision.
SETUP = """
import torch, flash_attn, flash_attn.flash_attn_interface
from flash_attn.bert_padding import pad_input, unpad_input

def numbers(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)

assert flash_attn.flash_attn_interface.flash_attn_func is flash_attn.flash_attn_func

def peak(function):
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = function()
    print("MIB", (torch.cuda.max_memory_allocated() - before) / 2**20)
    return result

qkv, q, k = numbers(4, 2048, 3, 16, 64), numbers(4, 2048, 16, 64), numbers(4, 2048, 4, 64)
grad = torch.ones(4, 2048, 16, 64, device="cuda", dtype=torch.bfloat16)
"""


def simulate(tmp_path, code, *options):
    """What `code`, after SETUP, printed on the virtual card."""
    script = tmp_path / "train.py"
    script.write_text(SETUP + code)
    command = [sys.executable, "-m", "peaksight", "run", "--steps", "0", "--gpu", "a100-80gb", *options, script]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=tmp_path)


def mib(done):
    """The numbers that it measured."""
    return [float(line.removeprefix("MIB ")) for line in done.stdout.splitlines() if line.startswith("MIB ")]


def test_what_the_kernels_take(tmp_path):
    """The forward its output and statistics; the backward, in single precision, sums of the queries' gradient.

    Gradients of packed tensors are written in place. Keys that heads share get a gradient for each of the heads before.
    Padding of sequences goes and comes back, and a padded head is cut off again.
    """
    done = simulate(
        tmp_path,
        """
out = peak(lambda: flash_attn.flash_attn_qkvpacked_func(qkv, causal=True))
peak(lambda: out.backward(grad))
out = peak(lambda: flash_attn.flash_attn_func(q, k, k, causal=True))
peak(lambda: out.backward(grad))
q.grad = None
words, places, starts, longest, _ = unpad_input(q, torch.ones(4, 2048, device="cuda", dtype=torch.int64))
out = flash_attn.flash_attn_varlen_func(words, words, words, starts, starts, longest, longest, causal=True)
pad_input(out, places, 4, 2048).backward(grad)
odd = numbers(2, 100, 8, 60)
odd = flash_attn.flash_attn_func(odd, odd, odd)
print("SHAPES", tuple(words.shape), longest, tuple(q.grad.shape), tuple(odd.shape))
""",
    )
    forward, sums, statistics = 16.5, 32, 0.5
    grouped = 16 + 4 + 4 + sums + statistics + 2 * 16

    assert [forward, 48 + sums + statistics, forward, grouped] == pytest.approx(mib(done), abs=0.002)
    assert "SHAPES (8192, 16, 64) 2048 (4, 2048, 16, 64) (2, 100, 8, 60)" in done.stdout
    assert "flash_attn, not installed here" in " ".join(done.stdout.split())


@pytest.mark.models
def test_transformers_takes_it(tmp_path):
    """`attn_implementation="flash_attention_2"` asks for the installed release before it imports anything."""
    done = simulate(
        tmp_path,
        """
from transformers import AutoModelForCausalLM, LlamaConfig
config = LlamaConfig(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=999)
model = AutoModelForCausalLM.from_config(config, attn_implementation="flash_attention_2", dtype=torch.bfloat16).cuda()
ids = torch.ones(2, 64, dtype=torch.int64, device="cuda")
model(input_ids=ids, labels=ids).loss.backward()
print("DONE", flash_attn.__version__)
""",
    )

    assert "DONE 2.8.3" in done.stdout, done.stderr


REFUSED = """
for call in (
    lambda: flash_attn.flash_attn_func(q.float(), q.float(), q.float()),
    lambda: flash_attn.flash_attn_func(q, q.unflatten(2, (8, 2))[:, :, :3, 0], q),
    lambda: __import__("flash_attn.layers.rotary"),
    lambda: flash_attn.flash_attn_func(*[numbers(1, 8, 2, 288)] * 3),
):
    try:
        call()
    except (RuntimeError, ImportError) as error:
        print("REFUSED", error)
"""


def test_what_it_refuses(tmp_path):
    """As the kernels do, and what the stand-in lacks."""
    done = simulate(tmp_path, REFUSED)

    assert [
        "FlashAttention only support fp16 and bf16 data type",
        "Number of heads in key/value must divide number of heads in query",
        "No module named 'flash_attn.layers'",
        "FlashAttention forward only supports head dimension at most 256",
    ] == [line.removeprefix("REFUSED ") for line in done.stdout.splitlines() if line.startswith("REFUSED ")]


def test_an_old_card(tmp_path):
    """A T4 has no kernel of it."""
    done = simulate(tmp_path, "flash_attn.flash_attn_func(q, q, q)", "--gpu", "t4")

    assert 2 == done.returncode
    assert "only supports Ampere GPUs or newer" in done.stderr


def test_nobody_named_it(tmp_path):
    """A library that would take it if it were there finds nothing."""
    script = tmp_path / "train.py"
    script.write_text("from importlib.util import find_spec\nprint('FOUND', find_spec('flash' + '_att' + 'n'))")
    command = [sys.executable, "-m", "peaksight", "run", "--steps", "0", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    assert "FOUND None" in done.stdout
