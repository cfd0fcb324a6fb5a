"""Scores of attention at the peak, and softmaxes that are none."""

from dataclasses import replace

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.materialised_attention import RULE
from peaksight.records import Effect, Outcome, Phase, WeightsFact
from peaksight.units import MIB
from tests.helpers import allocation_of, capture_of, step_of

SCORES = "float32[2, 4, 64, 64]"


def test_scores_between_two_products_go():
    """With their casts, dropout, masks, and the gradients of all of them."""
    capture = capture_of(allocation_of(3 * MIB, born=0), *_attention(), steps=[step_of(1, 1, 40, backward_began=[12])])
    (finding,) = RULE.look(Evidence(capture))

    assert finding.bytes == 5 * MIB
    assert finding.at == "train.py:7"
    assert finding.fixes[0].effect is Effect.NOISE
    assert "3.00 MiB at train.py:7 in 2 blocks" in finding.evidence[0]


def test_attention_without_dropout_is_the_same_up_to_rounding():
    """A fused kernel draws nothing then."""
    blocks = [a for a in _attention() if a.op != "aten::native_dropout"]
    (finding,) = RULE.look(Evidence(capture_of(*blocks, steps=[step_of(1, 1, 40, backward_began=[12])])))

    assert finding.fixes[0].effect is Effect.ROUNDING


def test_attention_that_is_asked_to_be_fused():
    """To call the function is no fix where its math kernel ran, in any library; near miss: infinities of others."""

    def first_fix(tensor):
        masked = allocation_of(MIB, born=4, died=5, op="aten::isneginf", tensor=tensor, source="train.py:7")
        blocks = (*_attention()[:3], masked, *_attention()[3:])
        (finding,) = RULE.look(Evidence(capture_of(*blocks, steps=[step_of(1, 1, 40, backward_began=[12])])))
        return finding.fixes[0].text

    assert first_fix("bool[2, 4, 64, 64]").startswith("What a fused kernel")
    assert first_fix("bool[2, 4, 64, 32]").startswith("torch.nn.functional.scaled_dot_product_attention")


def test_a_softmax_over_classes_is_none():
    """It follows a linear layer, which is no batched product."""
    capture = capture_of(
        allocation_of(2 * MIB, born=1, died=3, op="aten::addmm", tensor="float32[128, 64]"),
        allocation_of(2 * MIB, born=2, op="aten::_softmax", tensor="float32[2, 64, 64]"),
        allocation_of(MIB, born=4, op="aten::bmm", tensor="float32[2, 64, 8]"),
    )
    answer = RULE.look(Evidence(capture))

    assert answer.outcome is Outcome.REFUTED
    assert answer.why == "no softmax stands between two batched products"


def test_pairs_without_a_softmax_are_none():
    """As are distances or correlations of all pairs."""
    capture = capture_of(
        allocation_of(2 * MIB, born=1, op="aten::bmm", tensor="float32[2, 64, 64]"),
        allocation_of(MIB, born=2, op="aten::bmm", tensor="float32[2, 64, 8]"),
    )

    assert RULE.look(Evidence(capture)).outcome is Outcome.REFUTED


def test_small_scores_are_refuted_with_their_bytes():
    """Beside a peak that is of something else."""
    capture = capture_of(allocation_of(900 * MIB, born=0), *_attention())

    assert RULE.look(Evidence(capture)).why == "without the scores of attention the peak falls by 5.00 MiB only"


def test_streams_are_told_by_who_reads_their_weights():
    """Of two ways through one line, what something reads of the one does not keep the other from being fused."""
    facts = (
        WeightsFact(born=2, callers="model.py:7 < model.py:20", read_share=0.0),
        WeightsFact(born=102, callers="model.py:7 < model.py:21", read_share=0.5, reader="model.py:30"),
    )
    both = (*_attention(), *(replace(a, born=a.born + 100, died=a.died and a.died + 100) for a in _attention()))
    capture = replace(capture_of(*both, steps=[step_of(1, 1, 140, backward_began=[12, 112])]), weights=facts)
    (finding,) = RULE.look(Evidence(capture))

    assert "nobody reads the weights (float32[2, 4, 64, 64]) of the calls from model.py:20" in finding.evidence[-2]
    assert "50 % of the weights" in finding.evidence[-1]
    assert finding.evidence[-1].endswith("of the calls from model.py:21 are read, at model.py:30")
    assert "model.py:20" in finding.fixes[1].text
    assert "model.py:21" not in finding.fixes[1].text


def test_without_knowing_who_reads_nothing_is_said_of_it():
    """As in the record of a real run."""
    (finding,) = RULE.look(Evidence(capture_of(*_attention(), steps=[step_of(1, 1, 40, backward_began=[12])])))

    assert len(finding.fixes) == 1
    assert "read" not in " ".join(finding.evidence)


def _attention():
    """One call, of which the backward has begun: 2 + 1 MiB are saved, 2 MiB are a gradient."""
    backward = {"phase": Phase.BACKWARD, "grad_enabled": False}
    return (
        allocation_of(2 * MIB, born=1, died=4, op="aten::bmm", tensor="float32[8, 64, 64]", source="train.py:6"),
        allocation_of(2 * MIB, born=2, died=15, op="aten::_softmax", tensor=SCORES, source="train.py:7"),
        allocation_of(
            MIB, born=3, died=14, op="aten::native_dropout", tensor="bool[2, 4, 64, 64]", source="train.py:7"
        ),
        allocation_of(MIB, born=5, op="aten::bmm", tensor="float32[8, 64, 16]", source="train.py:8"),
        allocation_of(2 * MIB, born=13, died=16, op="aten::bmm", tensor="float32[8, 64, 64]", **backward),
    )
