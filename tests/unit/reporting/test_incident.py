"""The post-mortem in Markdown."""

from dataclasses import replace

from golden_files import compare_golden
from helpers import holder_of, report_of
from peaksight.records import Category, Phase
from peaksight.records.findings import Basis, Effect, Finding
from peaksight.records.plan import Expectation, Plan
from peaksight.records.proposals import Candidate, FixReport, Outcome, Part, Risk, Tried, Written
from peaksight.reporting.incident import incident_to_markdown
from peaksight.units import GIB, MIB

DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-AdamW(p)\n+AdamW(p, fused=True)\n"


def tried(title, gib, seconds, *, phase=Phase.BACKWARD, effect=Effect.ROUNDING, cautions=()):
    """Something that was simulated; it fits where it takes no more than 22 GiB."""
    candidate = Candidate(kinds=(), title=title, slots=(), effect=effect, cautions=cautions)
    outcome = Outcome(
        allocated_bytes=gib * GIB - MIB, reserved_bytes=gib * GIB, seconds=seconds, phase=phase, step=2, at="train.py:9"
    )
    return Tried(candidate=candidate, outcome=outcome, fits=gib <= 22)


def found(**about):
    """A run of 30 GiB on a card of 23, with a plan of two parts."""
    original = tried("as it is", 30, 0.5, phase=Phase.OPTIMIZER, effect=Effect.BITWISE)
    fused, blocks = tried("fused optimizer", 25, 0.4), tried("checkpoint 4 of 12 blocks", 27, 0.6)
    best = tried("fused optimizer + checkpoint 4 of 12 blocks", 21, 0.55, cautions=("dropout stays the same",))
    smaller = tried("checkpoint 12 of 12 blocks", 15, 0.7)
    expected = Expectation(
        peak_allocated_bytes=(20 * GIB, 20 * GIB + 512 * MIB),
        peak_reserved_bytes=(21 * GIB, 21 * GIB),
        samples=8,
        micro_batches=1,
        steps_per_epoch=125,
        parameters=4_000,
        trainable=3_000,
        absent_warnings=("None of the inputs have requires_grad=True",),
    )
    facts = {
        "argv": ("train.py", "--name", "a run"),
        "gpu": "rtx-4090",
        "torch": "2.14+cu130",
        "usable_bytes": 23 * GIB,
        "limit_bytes": 22 * GIB,
        "allowed": Effect.ROUNDING,
        "original": original,
        "best": best,
        "smallest": best,
        "runners_up": (smaller,),
        "next_plans": (smaller,),
        "parts": (
            Part(title="fused optimizer", alone=fused.outcome, left_out=blocks.outcome),
            Part(title="checkpoint 4 of 12 blocks", alone=blocks.outcome, left_out=fused.outcome),
        ),
        "tried": (fused, blocks, best, smaller),
        "not_applied": (),
        "risks": (Risk(title="fragmentation", bytes=MIB), Risk(title="evaluation")),
        "plan": Plan(argv=(), sources="", peaksight="", torch="", gpu="", expected=expected),
        "seconds": 9.0,
        "written": (
            Written(kind="optimizer-implementation", words="`fused=True`", at="train.py:1", in_diff=True),
            Written(kind="checkpoint-modules", words="`torch.utils.checkpoint`"),
        ),
        "diff": DIFF,
    }
    return FixReport(**(facts | about))


def report():
    """Where the memory is, with a cause, and something that does nothing."""
    finding = Finding(
        rule="foreach",
        title="The optimizer's step makes the peak",
        bytes=4 * GIB,
        evidence=("AdamW runs as foreach", "4.00 GiB of temporaries"),
        fixes=(),
        basis=Basis.LIFETIME,
        at="train.py:9",
    )
    idle = replace(finding, title="Nothing", without_effect=True)
    held = [holder_of(20 * GIB, Category.ACTIVATION), holder_of(10 * GIB, Category.OPTIMIZER_STATE)]
    return report_of(*held, findings=(finding, idle))


def test_a_plan():
    """All of it."""
    compare_golden(incident_to_markdown(found(), report()), "incident.md")


def test_no_plan():
    """What is missing, and nothing to monitor."""
    nothing = {"best": None, "plan": None, "parts": (), "written": (), "diff": "", "next_plans": (), "runners_up": ()}
    smallest = tried("checkpoint 12 of 12 blocks", 24, 0.7)

    text = incident_to_markdown(found(smallest=smallest, **nothing), report())

    assert "No plan fits. The smallest is checkpoint 12 of 12 blocks with 24.00 GiB, 2.00 GiB too much." in text
    assert "Nothing: there is no plan." in text
    assert "No smaller plan that fits was found." in text


def test_what_fits():
    """No failure is made up."""
    fits = tried("as it is", 20, 0.5)

    text = incident_to_markdown(found(original=fits, best=fits, parts=(), written=(), diff=""), report())

    assert text.startswith("# Memory: train.py on rtx-4090\n")
    assert "None is needed: the run fits as it is." in text
