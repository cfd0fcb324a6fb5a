"""The report in a terminal."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from golden_files import compare_golden
from helpers import device_of, holder_of, oom_of, peak_of, report_of
from peaksight.records import Approximation, Category, Gpu, NotReached, Phase, ScratchWrite, StepReport
from peaksight.reporting import render_report
from peaksight.units import GIB, MIB, format_bytes

LAYERS = {
    "attn.c_attn": (30, "aten::addmm"),
    "attn": (52, "aten::_scaled_dot_product_flash_attention"),
    "mlp.c_fc": (40, "aten::addmm"),
    "mlp.act": (120, "aten::mul"),
    "ln_1": (10, "aten::native_layer_norm"),
    "ln_2": (10, "aten::native_layer_norm"),
    "mlp.dropout": (12, "aten::native_dropout"),
    "attn.resid_dropout": (12, "aten::native_dropout"),
}


def gpt2_holders():
    """Twelve layers of activations, the states of AdamW, and the logits in the loss."""
    for layer in range(12):
        for name, (num_mib, op) in LAYERS.items():
            module = f"GPT2LMHeadModel.transformer.h.{layer}.{name}"
            yield holder_of(num_mib * MIB, Category.ACTIVATION, module=module, source="causal_lm.py:88", op=op)
    yield holder_of(474 * MIB, Category.PARAMETER, count=148, source="causal_lm.py:40", phase=Phase.INIT)
    yield holder_of(948 * MIB, Category.OPTIMIZER_STATE, count=296, source="causal_lm.py:99", phase=Phase.OPTIMIZER)
    yield holder_of(786 * MIB, Category.ACTIVATION, module="GPT2LMHeadModel.lm_head", source="causal_lm.py:88")
    yield holder_of(786 * MIB, Category.TEMPORARY, module="GPT2LMHeadModel", source="causal_lm.py:88", step=2)
    yield holder_of(64 * 1024, Category.INPUT, source="causal_lm.py:80", step=2)


def gpt2_on_a_small_card():
    """GPT-2 on a card of 4 GiB: it does not fit."""
    holders = list(gpt2_holders())
    allocated = sum(holder.bytes for holder in holders)
    return report_of(
        *holders,
        argv=("causal_lm.py", "--batch", "8"),
        gpu=Gpu(name="Tesla T4", total_bytes=6 * GIB, usable_bytes=6 * GIB - 157 * MIB),
        fits=False,
        peak=peak_of(allocated, reserved_bytes=allocated + 312 * MIB, at="causal_lm.py:88"),
        oom=oom_of(
            786 * MIB, at="causal_lm.py:88", allocated_bytes=5 * GIB, reserved_bytes=6 * GIB, live=tuple(holders)
        ),
        steps=tuple(
            StepReport(peak_allocated_bytes=allocated - less, peak_reserved_bytes=allocated - less + 312 * MIB)
            for less in (948 * MIB, 0, 0)
        ),
        not_simulated=(
            Approximation(slug="context-estimated", what="CUDA context of Tesla T4: not measured", bytes=157 * MIB),
            Approximation(slug="loaded-kernels", what="kernels that CUDA loads as the job runs", bytes=None),
        ),
        not_reached_lines=(
            NotReached(at="causal_lm.py:104", text="if step % 100 == 0"),
            NotReached(at="causal_lm.py:107", text="torch.save(model.state_dict(), args.out)"),
        ),
        writes=(ScratchWrite(path="out/checkpoint-3/model.safetensors", bytes=474 * MIB),),
    )


def printed(report, *, width=100, **console):
    """What `report` looks like at `width` columns; plain unless `console` says otherwise."""
    stream = io.StringIO()
    render_report(report, Console(file=stream, width=width, **console))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 100])
def test_a_report_that_does_not_fit(width):
    """The whole page, at the width of an old and of a common terminal."""
    page = printed(gpt2_on_a_small_card(), width=width)

    assert page.splitlines()[0].startswith(
        "Does not fit: needs 6.58 GiB (predicted); the Tesla T4 gives 5.85 GiB; fails at "
    )
    assert all(len(line) <= width for line in page.splitlines()[1:-1])
    compare_golden(page, f"does-not-fit-{width}.txt")


def test_the_categories_add_up_to_the_peak():
    """The total row is the peak, 100 %."""
    report = gpt2_on_a_small_card()
    total = next(line for line in printed(report).splitlines() if line.startswith(" total"))

    assert format_bytes(report.peak.allocated_bytes) in total
    assert "100.0 %" in total


def test_ten_holders_and_the_others():
    """Repeated layers are one row each; what is beyond ten is told in one."""
    page = printed(gpt2_on_a_small_card())

    assert "GPT2LMHeadModel.transformer.h.*.mlp.act" in page
    assert "3 others" in page


def test_an_ascii_terminal_gets_ascii():
    """No character that the encoding lacks."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    render_report(gpt2_on_a_small_card(), Console(file=stream, width=100))
    stream.seek(0)

    assert "####" in stream.read()


def test_a_terminal_gets_colour_unless_told_otherwise(monkeypatch):
    """NO_COLOR is obeyed."""
    terminal = {"force_terminal": True, "color_system": "truecolor"}

    assert "\x1b[1;31mDoes not fit" in printed(gpt2_on_a_small_card(), **terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31m" not in printed(gpt2_on_a_small_card(), **terminal)


def test_many_steps_are_shown_by_their_ends():
    """Twenty steps take eight lines."""
    steps = (StepReport(peak_allocated_bytes=GIB, peak_reserved_bytes=GIB),) * 20
    page = printed(report_of(holder_of(GIB, Category.PARAMETER), steps=steps))

    assert [line.split()[0] for line in page.splitlines() if "|" in line or "\u2502" in line][1:] == [
        "1", "2", "3", "4", "17", "18", "19", "20",
    ]  # fmt: skip


def test_a_script_without_device_memory_is_one_sentence():
    """No empty tables."""
    page = printed(report_of(steps=()))

    assert page.startswith("Nothing to predict")
    assert "Alive at the peak" not in page


def test_ten_lines_and_the_others():
    """What is beyond ten is counted."""
    lines = tuple(NotReached(at=f"train.py:{line}", text="if [step]") for line in range(100, 112))
    page = printed(report_of(holder_of(GIB, Category.INPUT), not_reached_lines=lines))

    assert "train.py:109  if [step]" in page
    assert "train.py:110" not in page
    assert "2 others" in page


def test_brackets_in_the_names_of_files_are_text():
    """A path is not rich's markup."""
    page = printed(report_of(holder_of(GIB, Category.INPUT), writes=(ScratchWrite(path="out/[red].pt", bytes=1),)))

    assert "out/[red].pt" in page


def gpt2_on_two_cards():
    """The first fits the model, the second is too small for what it gets."""
    report, usable = gpt2_on_a_small_card(), 6 * GIB - 157 * MIB
    first, second = device_of(0, 2 * GIB, usable_bytes=usable), device_of(1, 0, usable_bytes=usable, fits=False)
    return replace(report, device=1, devices=(first, replace(second, peak=report.peak)))


def test_several_cards():
    """Each has a row, and the titles say whose the rest is."""
    text = printed(gpt2_on_two_cards(), width=80)

    assert "(predicted) on cuda:1;" in text
    assert "Predicted peak on cuda:1" in text
    compare_golden(text, "two-cards-80.txt")
