"""GIVEN work before an interval, THEN it is found with what it holds, unless that is little or made elsewhere."""

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.interval_after_work import RULE
from peaksight.records import Hold, Outcome, Phase, StatementFact
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of


def work_of(kind, **about):
    facts = {
        "at": "train.py:7",
        "text": "vectors = eigh(graphs)",
        "num_runs": None,
        "last_line": 8,
        "name": "vectors",
        "where": "train.py:main",
        "used_at": "train.py:9",
        "used_as": "vectors[::k]",
    }
    return StatementFact(kind=kind, **(facts | about))


def looked(work, *allocations, holds=()):
    capture = capture_of(*allocations, steps=[step_of(1, 1, 99)], observed=True, statements=[work], holds=holds)
    return RULE.look(Evidence(capture))


BASE = allocation_of(60 * MIB, born=1, died=90)


def made_at(line, size=40 * MIB, **about):
    return allocation_of(size, born=2, died=50, source=f"train.py:{line}", **about)


def test_a_part_of_what_was_made_for_all_would_hold_at_most_half():
    (finding,) = looked(work_of("slice-after-work"), BASE, made_at(8, tensor="float32[1920, 19, 19]"))
    assert (finding.bytes, finding.without_effect, finding.at) == (0, True, "train.py:7")
    assert finding.fixes[0].saves_bytes == 20 * MIB
    assert "holds up to 40.00 MiB at once, the largest of it float32[1920, 19, 19]" in finding.evidence[0]


def test_an_interval_that_is_a_setting_is_told_even_if_the_work_holds_little():
    (finding,) = looked(work_of("slice-after-work"), BASE, made_at(7, MIB))
    assert "1.00 MiB (2 % of the peak) lower" in finding.evidence[1]
    assert looked(work_of("constant-slice-after-work"), BASE, made_at(7, MIB)).outcome is Outcome.REFUTED


def test_what_other_lines_make_is_not_of_the_work():
    examined = looked(work_of("slice-after-work"), BASE, made_at(10))
    assert examined.outcome is Outcome.REFUTED
    assert "falls by 0 B only" in examined.why


def test_a_result_that_only_some_steps_use_is_found_with_what_its_name_holds():
    work = work_of("interval-after-work", used_as="if step % 10 == 0")
    moment = {"tick": 3, "step": 1, "phase": Phase.FORWARD, "born": 2, "where": "train.py:main"}
    hold = Hold(name="vectors.last", shown_bytes=MIB, by_graph=False, **moment)
    (finding,) = looked(work, BASE, made_at(30, saved_by="MmBackward0"), holds=[hold])
    assert finding.title.endswith("in every step, and used at train.py:9 `if step % 10 == 0` only")
    assert "It and what is made for it hold 40.00 MiB (40 % of the peak) at the peak." in finding.evidence
    needed = looked(work, BASE, made_at(30, saved_by="MmBackward0", backward=1), holds=[hold])
    assert needed.outcome is Outcome.REFUTED


def test_what_a_function_makes_for_it_alone_is_of_the_work():
    work = work_of("interval-after-work", inside_first=20, inside_last=25)
    (finding,) = looked(work, BASE, made_at(23))
    assert "It and what is made for it hold 40.00 MiB (40 % of the peak) at the peak." in finding.evidence


def test_a_record_of_a_real_run_does_not_tell():
    assert RULE.look(Evidence(capture_of(BASE))).outcome is Outcome.NOT_DECIDABLE
