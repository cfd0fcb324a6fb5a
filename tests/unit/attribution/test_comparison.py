"""Where the difference of two peaks comes from."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import allocation_of, capture_of
from peaksight.attribution import JudgedRun, commit_peak, commit_without_answer, compare_runs, report_on
from peaksight.gpus import find_card, room_on
from peaksight.records import Basis, Category, Finding, LineMatch, Phase, Role, SourceLine
from peaksight.units import GIB, MIB

T4 = room_on(find_card("t4"))


def run_of(*allocations, **about):
    """A run on a T4."""
    return judged([capture_of(*allocations, **about)])


def judged(captures, findings=None):
    """The run of `captures` on a T4, with these `findings`."""
    return JudgedRun.of(captures, replace(report_on(captures, T4), findings=findings), "train.py")


def finding_of(rule, num_bytes, title="It holds memory"):
    """What a rule found."""
    return Finding(rule=rule, title=title, bytes=num_bytes, evidence=(), fixes=(), basis=Basis.LIFETIME)


def said(at, text, digest):
    """A line of a file whose text has this digest."""
    return SourceLine(at=at, text=text, file_sha256=digest)


@st.composite
def runs(draw):
    """Up to twelve allocations at four lines of two files, in three modules, of which some are freed."""
    allocations = []
    for number in range(draw(st.integers(0, 12))):
        born = 2 * number + 1
        died = draw(st.none() | st.just(born + 1))
        line = draw(st.sampled_from(["", "train.py:1", "train.py:2", "model.py:1", "model.py:9"]))
        phase = draw(st.sampled_from([Phase.INIT, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER]))
        role = draw(st.sampled_from([Role.PARAMETER, Role.GRADIENT, Role.UNMARKED]))
        module = draw(st.sampled_from(["", "Model", "Model.layers.0"]))
        size = draw(st.integers(1, 64 * MIB))
        allocations.append(
            allocation_of(size, born=born, died=died, source=line, phase=phase, role=role, module=module)
        )
    texts = draw(st.lists(st.sampled_from(["x = f(x)", "x = g(x, 3)", "loss.backward()"]), min_size=4, max_size=4))
    places = ["train.py:1", "train.py:2", "model.py:1", "model.py:9"]
    known = draw(st.booleans())
    digest = draw(st.sampled_from("ab"))
    lines = tuple(said(at, text, digest) for at, text in zip(places, texts, strict=True)) if known else ()
    return run_of(*allocations, source_lines=lines)


@settings(max_examples=40)
@given(runs(), runs())
def test_each_table_adds_up_to_the_difference_and_to_both_peaks(a, b):
    """Whatever the runs are, and however their lines are matched."""
    found = compare_runs(a, b)

    assert found.allocated_difference_bytes == b.report.peak.allocated_bytes - a.report.peak.allocated_bytes
    assert found.reserved_difference_bytes == b.report.peak.reserved_bytes - a.report.peak.reserved_bytes
    for rows in (found.by_category, found.by_module, found.by_line):
        assert sum(row.a_bytes for row in rows) == a.report.peak.allocated_bytes
        assert sum(row.b_bytes for row in rows) == b.report.peak.allocated_bytes
        assert sum(row.difference_bytes for row in rows) == found.allocated_difference_bytes
        assert [row.difference_bytes for row in rows] == [row.b_bytes - row.a_bytes for row in rows]
        sizes = [abs(row.difference_bytes) for row in rows]
        assert sizes == sorted(sizes, reverse=True)


@settings(max_examples=40)
@given(runs(), runs())
def test_a_line_is_in_one_row(a, b):
    """Of each run: no line is counted twice."""
    rows = compare_runs(a, b).by_line
    for sources in ([row.a_source for row in rows], [row.b_source for row in rows]):
        there = [source for source in sources if source is not None]
        assert len(there) == len(set(there))


@settings(max_examples=20)
@given(runs())
def test_a_run_does_not_differ_from_itself(run):
    """Nor does any row, and every line is found."""
    found = compare_runs(run, run)

    assert found.allocated_difference_bytes == 0
    assert not any(row.difference_bytes for row in (*found.by_category, *found.by_module, *found.by_line))
    assert all(row.a_source == row.b_source for row in found.by_line)


def test_what_grew_is_told_by_category_module_and_line():
    """GIVEN twice the activations at a line that moved by two, THEN one row in each table says so."""
    about = {"module": "Model.mlp", "grad_enabled": True}
    a = run_of(
        allocation_of(GIB, born=1, role=Role.PARAMETER, source="train.py:5"),
        allocation_of(GIB, born=2, source="train.py:8", **about),
        source_lines=(said("train.py:5", "model.cuda()", "1"), said("train.py:8", "loss = model(x)", "1")),
    )
    b = run_of(
        allocation_of(GIB, born=1, role=Role.PARAMETER, source="train.py:5"),
        allocation_of(2 * GIB, born=2, source="train.py:10", **about),
        source_lines=(said("train.py:5", "model.cuda()", "2"), said("train.py:10", "loss = model(x)", "2")),
    )
    found = compare_runs(a, b)
    category, module, line = found.by_category[0], found.by_module[0], found.by_line[0]

    assert found.allocated_difference_bytes == GIB
    assert (category.category, category.difference_bytes) == (Category.ACTIVATION, GIB)
    assert (module.module, module.difference_bytes) == ("Model.mlp", GIB)
    assert (line.a_source, line.b_source, line.matched) == ("train.py:8", "train.py:10", LineMatch.TEXT)
    assert (line.text, line.difference_bytes) == ("loss = model(x)", GIB)


def test_the_most_of_each_phase_is_at_different_moments():
    """A phase that one run lacks is None there; the phase of the peak has the peak."""
    a = run_of(
        allocation_of(GIB, born=1, died=3, phase=Phase.FORWARD),
        allocation_of(GIB, born=2, died=4, phase=Phase.BACKWARD),
    )
    b = run_of(allocation_of(3 * GIB, born=1, phase=Phase.FORWARD))

    assert [(row.phase, row.a_bytes, row.b_bytes) for row in compare_runs(a, b).by_phase] == [
        (Phase.FORWARD, GIB, 3 * GIB),
        (Phase.BACKWARD, 2 * GIB, None),
    ]


def test_the_peak_is_that_of_the_run_without_a_limit():
    """GIVEN a run that failed and what it needs, THEN both the peak and the phases are of the latter."""
    limited, unlimited = capture_of(allocation_of(GIB, born=1)), capture_of(allocation_of(20 * GIB, born=1))
    failed = judged([limited, unlimited])
    found = compare_runs(failed, failed)

    assert found.a.peak.allocated_bytes == 20 * GIB
    assert found.by_phase[0].a_bytes == 20 * GIB


def test_causes_of_either_run():
    """Of each rule the largest finding, those of B first."""
    captures = [capture_of(allocation_of(GIB, born=1))]
    a = judged(captures, (finding_of("graph-kept", GIB), finding_of("graph-kept", MIB), finding_of("other", MIB)))
    b = judged(captures, (finding_of("optimizer-temporaries", 2 * MIB), finding_of("graph-kept", 3 * MIB, "Two are")))

    assert [(row.rule, row.title, row.a_bytes, row.b_bytes) for row in compare_runs(a, b).causes] == [
        ("optimizer-temporaries", "It holds memory", None, 2 * MIB),
        ("graph-kept", "Two are", GIB, 3 * MIB),
        ("other", "It holds memory", MIB, None),
    ]
    assert compare_runs(judged(captures), judged(captures)).causes == ()


def test_a_commit_is_compared_with_the_one_before():
    """The line with the largest difference, none for the first commit nor for one that changes nothing."""
    small, large = (run_of(allocation_of(num * GIB, born=1, source="train.py:8")) for num in (1, 3))
    first = commit_peak("c0", "Begin", small, None, None)
    second = commit_peak("c1", "Grow", large, "c0", small)
    third = commit_peak("c2", "Tidy", large, "c1", large)

    assert (first.allocated_bytes, first.allocated_difference_bytes, first.largest) == (GIB, None, None)
    assert (second.allocated_difference_bytes, second.since) == (2 * GIB, "c0")
    assert second.largest.b_source == "train.py:8"
    assert (third.allocated_difference_bytes, third.largest) == (0, None)
    assert commit_without_answer("c3", "Break", "it failed").allocated_bytes is None
