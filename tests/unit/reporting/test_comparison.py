"""The page of `peaksight compare`, in a terminal and as HTML."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from golden_files import compare_golden
from helpers import oom_of, peak_of
from helpers_page_numbers import text_of_page
from peaksight.records import (
    Approximation,
    Category,
    CategoryDifference,
    CauseDifference,
    CommitHistory,
    CommitPeak,
    ComparedRun,
    Comparison,
    Gpu,
    LineDifference,
    LineMatch,
    ModuleDifference,
    Phase,
    PhaseDifference,
)
from peaksight.reporting.comparison import render_commits, render_comparison
from peaksight.reporting.comparison_sentences import happened, matching, moved
from peaksight.reporting.differences import NUM_ROWS, tables
from peaksight.reporting.exports.comparison_markdown import commits_to_markdown, comparison_to_markdown
from peaksight.reporting.pages.comparison_page import commits_to_html, comparison_to_html
from peaksight.units import GIB, MIB

HOSTILE = "<script>alert('1')</script>"
T4 = Gpu(name="Tesla T4", total_bytes=15 * GIB, usable_bytes=14 * GIB)

CATEGORIES = {Category.ACTIVATION: (2048, 4096), Category.PARAMETER: (512, 512), Category.TEMPORARY: (256, 1)}
MODULES = {f"Model.h.{layer}.mlp": (128, 256) for layer in range(16)} | {"": (768, 513)}
LINES = [
    ("model.py:88", "model.py:91", LineMatch.TEXT, "h = self.act(self.fc(h))", 1920, 3840),
    (
        "train.py:40",
        "train.py:40",
        LineMatch.EDITED,
        "loss = model(x[:, :-1], labels=x[:, 1:], return_dict=True)",
        128,
        248,
    ),
    ("train.py:20", "train.py:20", LineMatch.TEXT, "model = Model(config).cuda()", 512, 512),
    ("train.py:31", None, LineMatch.ALONE, "mask = torch.ones(8, 1, 1024, 1024)", 256, 0),
    (None, "train.py:33", LineMatch.ALONE, "keep = x > 0", 0, 8),
    ("", "", LineMatch.SAME_FILE, "", 0, 1),
]


def run_of(allocated_bytes, **about):
    """A run on a T4 that fits, with its peak in the backward of step 2."""
    facts = {
        "given": "train.py --batch 8",
        "argv": ("train.py", "--batch", "8"),
        "gpu": T4,
        "torch": "2.14.1",
        "device_rules": "2.14+cu130",
        "fits": True,
        "peak": peak_of(allocated_bytes, reserved_bytes=allocated_bytes + 64 * MIB, at="model.py:88"),
        "oom": None,
        "not_simulated": (Approximation(slug="values", what="1 value was read", bytes=None),),
        "device": 0,
        "num_devices": 1,
    }
    return ComparedRun(**(facts | about))


def larger_batch():
    """Twice the batch: the activations double, a mask is gone, and the peak is at another moment."""
    a, b = (MIB * sum(sizes[side] for sizes in CATEGORIES.values()) for side in (0, 1))
    second = run_of(
        b,
        given="after.capture",
        argv=("train.py", "--batch", "16"),
        fits=False,
        oom=oom_of(GIB, at="model.py:91"),
        peak=peak_of(b, reserved_bytes=b + 128 * MIB, at="train.py:44", phase=Phase.OPTIMIZER),
    )
    return Comparison(
        schema="peaksight.comparison/1",
        a=run_of(a),
        b=second,
        allocated_difference_bytes=b - a,
        reserved_difference_bytes=b - a + 64 * MIB,
        by_phase=(
            PhaseDifference(phase=Phase.FORWARD, a_bytes=2 * GIB, b_bytes=4 * GIB),
            PhaseDifference(phase=Phase.BACKWARD, a_bytes=a, b_bytes=4 * GIB),
            PhaseDifference(phase=Phase.OPTIMIZER, a_bytes=None, b_bytes=b),
        ),
        by_category=tuple(CategoryDifference(category=what, **in_mib(*sizes)) for what, sizes in CATEGORIES.items()),
        by_module=tuple(ModuleDifference(module=what, **in_mib(*sizes)) for what, sizes in MODULES.items()),
        causes=(
            CauseDifference(
                rule="materialised-attention",
                title="Attention is written out as a matrix of all pairs",
                a_bytes=640 * MIB,
                b_bytes=1280 * MIB,
            ),
            CauseDifference(
                rule="optimizer-temporaries",
                title="The optimizer's temporaries are the peak",
                a_bytes=None,
                b_bytes=256 * MIB,
            ),
        ),
        by_line=tuple(
            LineDifference(a_source=a, b_source=b, matched=how, text=text, **in_mib(*sizes))
            for a, b, how, text, *sizes in LINES
        ),
    )


def in_mib(a, b):
    """The sizes of a row."""
    return {"a_bytes": a * MIB, "b_bytes": b * MIB, "difference_bytes": (b - a) * MIB}


def five_commits():
    """One begins, one grows, one fails, one is compared with the one before that, and one changes nothing."""
    line = larger_batch().by_line[1]
    sizes = {"reserved_bytes": 3 * GIB, "fits": True, "largest": None, "failure": ""}
    none = dict.fromkeys(
        ("allocated_bytes", "reserved_bytes", "fits", "allocated_difference_bytes", "since", "largest")
    )
    changes = [
        {"subject": "Begin", "since": None, "allocated_bytes": GIB, "allocated_difference_bytes": None},
        {"subject": "Grow", "since": "0" * 40, "allocated_bytes": 2 * GIB, "allocated_difference_bytes": GIB},
        none | {"subject": "Break", "failure": "the script failed in step 1 (NameError: name 'y' is not defined)"},
        {"subject": "Mend", "since": "1" * 40, "allocated_bytes": GIB, "allocated_difference_bytes": -GIB},
        {"subject": "Tidy [up]", "since": "3" * 40, "allocated_bytes": GIB, "allocated_difference_bytes": 0},
    ]
    changes[1] |= {"largest": line, "fits": False}
    commits = tuple(CommitPeak(commit=str(n) * 40, **(sizes | change)) for n, change in enumerate(changes))
    return CommitHistory(
        schema="peaksight.commits/1", argv=("train.py", "--batch", "8"), range="main~4..main", commits=commits
    )


def printed(render, found, *, width=80):
    """What `found` looks like at `width` columns."""
    stream = io.StringIO()
    render(found, Console(file=stream, width=width, highlight=False))
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 110])
def test_a_comparison(width):
    """The whole page, at the width of an old and of a wide terminal."""
    page = printed(render_comparison, larger_batch(), width=width)

    assert page.splitlines()[0].startswith("B peaks 1.75 GiB higher than A (predicted): 4.50 GiB instead of 2.75 GiB")
    assert "\nThe peak moved from the backward to the optimizer step" in page
    assert all(len(line) <= width for line in page.splitlines())
    compare_golden(page, f"comparison-{width}.txt")


def test_commits():
    """The whole page."""
    page = printed(render_commits, five_commits())

    assert "the largest change is +1.00 GiB in 11111111 (Grow)." in " ".join(page.split())
    assert "Tidy [up]" in page
    compare_golden(page, "commits-80.txt")


def test_the_tables_of_a_person_add_up_too():
    """Whatever is folded: shown rows and the others are the total."""
    for table in tables(larger_batch()):
        rows = (*table.rows, *filter(None, [table.others]))
        assert sum(row.a_bytes for row in rows) == table.total.a_bytes
        assert sum(row.b_bytes for row in rows) == table.total.b_bytes
        assert sum(row.difference_bytes for row in rows) == table.total.difference_bytes


def test_layers_are_one_row_and_small_rows_too():
    """Sixteen layers are one row; what changed by less than half a percent of the largest change is folded."""
    categories, modules, lines = tables(larger_batch())

    assert [row.name for row in modules.rows] == ["Model.h.*.mlp", ""]
    assert [row.name for row in lines.rows] == ["model.py:88 -> 91", "train.py:31 (A only)", "~ train.py:40"]
    assert lines.others.name == "3 others"
    assert categories.others.name == "1 other, unchanged"


def test_no_table_is_long():
    """Of many rows with large differences the first ones are shown."""
    modules = tuple(ModuleDifference(module=f"m{n}", **in_mib(0, 200 - n)) for n in range(40))
    _, table, _ = tables(replace(larger_batch(), by_module=modules))

    assert len(table.rows) == NUM_ROWS
    assert table.others.name == "30 others"


def test_peaks_that_are_the_same():
    """Is said in as many words; reserved memory may still differ."""
    same = run_of(GIB)
    facts = {"a": same, "b": same, "allocated_difference_bytes": 0, "reserved_difference_bytes": 0}
    found = replace(larger_batch(), **facts)

    assert (
        happened(found) == "The predicted peaks of A and B are the same, 1.00 GiB allocated; reserved 1.06 GiB in both."
    )
    assert moved(found) == ""


@pytest.mark.parametrize(
    ("peak", "sentence"),
    [
        ({"phase": Phase.BACKWARD, "at": "model.py:91"}, ""),
        ({"phase": Phase.BACKWARD, "at": "model.py:91", "step": 3}, "The peak moved from step 2 to step 3."),
        (
            {"phase": Phase.BACKWARD, "at": "x.py:1"},
            "The peak stays in the backward and moved from model.py:88 to x.py:1.",
        ),
        (
            {"phase": Phase.FORWARD, "at": "x.py:1"},
            "The peak moved from the backward to the forward: the backward rose from 2.75 GiB to 4.00 GiB, the forward "
            "rose from 2.00 GiB to 4.00 GiB. The tables compare what is alive at these two moments.",
        ),
        (
            {"phase": Phase.OPTIMIZER, "at": "x.py:1"},
            "The peak moved from the backward to the optimizer step: the backward rose from 2.75 GiB to 4.00 GiB, the "
            "optimizer step takes 4.50 GiB and is in B only. The tables compare what is alive at these two moments.",
        ),
    ],
)
def test_whether_the_peak_moved(peak, sentence):
    """A line that moved in its file is the same line."""
    found = larger_batch()

    assert moved(replace(found, b=run_of(GIB, peak=peak_of(GIB, reserved_bytes=GIB, **peak)))) == sentence


def test_how_lines_were_matched():
    """Nothing where none was."""
    found = larger_batch()
    same, edited, number, alone = (
        replace(found, by_line=(replace(found.by_line[0], matched=how),))
        for how in (LineMatch.SAME_FILE, LineMatch.EDITED, LineMatch.NUMBER, LineMatch.ALONE)
    )

    assert matching(alone) == ""
    assert matching(same) == "In files that are the same in both runs, a line is matched by its number."
    assert "an edited one (~) by likeness" in matching(edited)
    assert "by number" in matching(number)


def test_the_web_pages_say_the_same():
    """Sentences, sizes and lines, as a file that fetches nothing."""
    found, history = larger_batch(), five_commits()
    for page, words in [
        (comparison_to_html(found), [happened(found), moved(found), "+1.88 GiB", "3 others", "after.capture"]),
        (commits_to_html(history), ["+1.00 GiB in 11111111", "NameError", "-1.00 GiB"]),
    ]:
        text = text_of_page(page)
        assert all(word in text for word in words)


def test_in_markdown():
    """For a pull request: the answer and the first table, the rest folded."""
    compare_golden(comparison_to_markdown(larger_batch()), "comparison.md")
    compare_golden(commits_to_markdown(five_commits()), "commits.md")


def test_texts_from_outside_are_no_markup():
    """A line of a script may hold tags."""
    found, history = larger_batch(), five_commits()
    line = replace(found.by_line[0], a_source=f"{HOSTILE}:1", text=HOSTILE)
    hostile = replace(found, a=run_of(GIB, given=HOSTILE), by_line=(line,))
    commit = replace(history.commits[1], subject=HOSTILE, largest=line, failure=HOSTILE)

    assert HOSTILE not in comparison_to_html(hostile)
    assert HOSTILE not in commits_to_html(replace(history, argv=(HOSTILE,), commits=(commit,)))
    for page in (comparison_to_markdown(hostile), commits_to_markdown(replace(history, commits=(commit,)))):
        assert HOSTILE not in re.sub("`[^`]*`", "", page)
