"""Logits of a vocabulary, one batch larger than the others, and reserved memory in pieces."""

from dataclasses import replace

from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules import fragmentation, logits_unsupervised, outlier_batch
from peaksight.records import BatchFact, LabelFact, Outcome, Phase, Role
from peaksight.units import GIB, MIB
from tests.helpers import allocation_of, capture_of, step_of


def test_logits_and_their_copies_go():
    """Those of 32 positions x 32768 classes; the hidden states stay."""
    (finding,) = logits_unsupervised.RULE.look(Evidence(_with_classes(32768)))

    assert finding.bytes == 8 * MIB
    assert "32 positions x 32768 classes" in finding.title


def test_slices_that_wait_for_one_backward_are_to_be_checkpointed():
    """GIVEN the head already works on slices, THEN slicing is no advice: autograd keeps what each of them makes."""
    made = {"tensor": "float32[32, 32768]", "op": "aten::_log_softmax", "source": "train.py:7"}
    slices = (allocation_of(4 * MIB, born=1 + place, **made) for place in range(3))
    (finding,) = logits_unsupervised.RULE.look(Evidence(capture_of(*slices, steps=[step_of(1, 1, 9)])))

    assert "Checkpoint head and loss, of which 3 calls keep log-probabilities here" in finding.fixes[0].text


def test_classes_of_pictures_are_in_the_second_dimension():
    """Near miss: pictures 2048 wide have a label of 19 for each pixel, and sounds one of 256 for each sample."""
    logits = allocation_of(8 * MIB, born=1, tensor="float32[1, 19, 1024, 2048]", op="aten::_log_softmax")
    labels, loss = (
        allocation_of(MIB, born=2 + place, op=f"aten::{op}") for place, op in enumerate(("clone", "nll_loss2d_forward"))
    )
    capture = capture_of(logits, labels, loss, steps=[step_of(1, 1, 9)])

    assert logits_unsupervised.RULE.look(Evidence(capture)).outcome is Outcome.REFUTED


def test_positions_without_a_label_are_counted():
    """GIVEN 24 of 32 labels are -100, THEN logits of the other 8 are a quarter."""
    run = replace(_with_classes(32768), labels=(LabelFact(born=1, count=32, num_ignored=24),))
    (finding,) = logits_unsupervised.RULE.look(Evidence(run))

    assert finding.title.endswith("; 8 of 32 have a label, 75 % none")
    assert [(fix.kind, fix.saves_bytes) for fix in finding.fixes] == [
        ("sliced-loss", 8 * MIB),
        ("labelled-positions", 6 * MIB),
    ]


def test_labels_but_for_the_last_words():
    """Near miss: nothing is selected where every position has one, or all but the last words."""
    run = replace(_with_classes(32768), labels=(LabelFact(born=1, count=32, num_ignored=0),))
    (finding,) = logits_unsupervised.RULE.look(Evidence(run))

    assert ["sliced-loss"] == [fix.kind for fix in finding.fixes]


def test_of_two_losses_the_labels_of_the_logits_are_told():
    """GIVEN a later loss of fewer positions, THEN as many labels as there are logits decide."""
    labels = tuple(LabelFact(born=born, count=count, num_ignored=20) for born, count in ((1, 31), (2, 24)))
    (finding,) = logits_unsupervised.RULE.look(Evidence(replace(_with_classes(32768), labels=labels)))

    assert "11 of 31 have a label" in finding.title


def test_labels_of_another_size_say_nothing():
    """Near miss: they are of a few samples, not of positions."""
    run = replace(_with_classes(32768), labels=(LabelFact(born=1, count=4, num_ignored=1),))
    (finding,) = logits_unsupervised.RULE.look(Evidence(run))

    assert "label" not in finding.title


def test_a_layer_inside_of_a_block_may_be_as_wide():
    """Near miss: an MLP of four times the width has as many columns as there are classes."""
    run = _with_classes(32768)
    wide = {"tensor": "float32[32, 32768]", "op": "aten::addmm"}
    inside, outside = (allocation_of(MIB, born=9, module=name, **wide) for name in ("Net.h.1.mlp", "Net.4"))
    found = set(logits_unsupervised.logits_of(Evidence(replace(run, allocations=(*run.allocations, inside, outside)))))

    assert outside in found
    assert inside not in found


def test_few_classes_are_no_vocabulary():
    """Near miss: an image classifier's loss is as small as its classes are few."""
    answer = logits_unsupervised.RULE.look(Evidence(_with_classes(100)))

    assert answer.why == "no log-softmax is over 1024 classes or more"


def test_what_an_optimizer_makes_is_no_logits():
    """Near miss: a square matrix of as many columns as there are classes."""
    matrix = allocation_of(64 * MIB, born=9, phase=Phase.OPTIMIZER, tensor="float32[32768, 32768]")
    run = _with_classes(32768)
    (finding,) = logits_unsupervised.RULE.look(Evidence(run))

    assert matrix not in set(
        logits_unsupervised.logits_of(Evidence(replace(run, allocations=(*run.allocations, matrix))))
    )
    assert finding.bytes == 8 * MIB


def test_one_larger_batch_makes_the_peak():
    """Its step needs 15 MiB, the median one 3."""
    (finding,) = outlier_batch.RULE.look(Evidence(_steps(inputs=(1, 1, 5), peaks=(3, 3, 15))))

    assert finding.bytes == 12 * MIB
    assert "step 3 needs 15.00 MiB, the median step 3.00 MiB" in finding.title


def test_a_higher_peak_of_equal_batches_is_no_outlier():
    """Near miss: memory that grows has another cause."""
    answer = outlier_batch.RULE.look(Evidence(_steps(inputs=(1, 1, 1), peaks=(3, 3, 15))))

    assert answer.outcome is Outcome.REFUTED


def test_two_steps_as_high_are_no_outliers():
    """Near miss: samples are cut to a length that both have reached."""
    answer = outlier_batch.RULE.look(Evidence(_steps(inputs=(1, 1, 5, 1, 5), peaks=(3, 3, 15, 3, 15))))

    assert answer.why == "batches vary, and none stands out: between the highest steps are 0 B at most"


def test_batches_of_all_lengths_have_no_outlier():
    """Near miss: each is a little longer than the one before, as where they are sorted."""
    sizes = range(1, 21)
    answer = outlier_batch.RULE.look(Evidence(_steps(inputs=sizes, peaks=[3 * size for size in sizes])))

    assert answer.outcome is Outcome.REFUTED


def test_several_long_batches_stand_out():
    """Two of sixteen, with little between them: it is the other fourteen that the card would need."""
    (finding,) = outlier_batch.RULE.look(Evidence(_steps(inputs=[1] * 14 + [9, 10], peaks=[3] * 14 + [27, 30])))

    assert finding.bytes == 27 * MIB
    assert finding.title.startswith("2 of 16 batches make the peak")


def test_the_loader_of_the_outlier_is_named():
    """By the shape that arrived, also where a library has read the next batch since."""
    batches = (_batch(1, 1, "int64[4, 100]"), _batch(20, 2, "int64[4, 900]"), _batch(21, 2, "int64[4, 100]"))
    capture = replace(_steps(inputs=(1, 1, 5), peaks=(3, 3, 15), tensor="int64[4, 900]"), batches=batches)
    (finding,) = outlier_batch.RULE.look(Evidence(capture))

    assert "the loader at train.py:3, asked for 4 samples, gave it as int64[4, 900]" in finding.evidence


def test_where_nothing_arrives_the_loaders_tell():
    """The peak alone says nothing of batches."""
    capture = _steps(inputs=(0, 0, 0), peaks=(3, 3, 15))
    batches = tuple(_batch(10 * step, step, "int64[4, 9]", num_bytes=size) for step, size in enumerate((1, 1, 5), 1))

    assert outlier_batch.RULE.look(Evidence(capture)).outcome is Outcome.NOT_DECIDABLE
    assert outlier_batch.RULE.look(Evidence(replace(capture, batches=batches)))[0].bytes == 12 * MIB


def test_trials_of_a_search_are_no_batches():
    """Near miss: sizes are tried, of which a smaller one is trained with."""
    capture = _trials(_steps(inputs=(1, 1, 5, 1), peaks=(3, 3, 15, 3)), 3)

    answer = outlier_batch.RULE.look(Evidence(capture))

    assert answer.why == "the step of the peak may be a trial of a search for a batch size"


def test_a_peak_after_the_last_step_is_of_no_batch():
    """GIVEN a checkpoint that is gathered then, THEN no step of the training stands out."""
    capture = _steps(inputs=(1, 1, 1), peaks=(3, 3, 3))
    gathered = allocation_of(64 * MIB, born=capture.allocations[-1].born + 9, step=4, phase=Phase.SAVE)
    answer = outlier_batch.RULE.look(Evidence(capture_of(*capture.allocations, gathered, steps=capture.steps)))

    assert answer.outcome is Outcome.NOT_DECIDABLE


def test_a_training_that_skips_what_does_not_fit_has_outliers():
    """GIVEN every step looks like a trial, THEN it is a search where the loader was asked for other sizes."""
    capture = _trials(_steps(inputs=(1, 1, 5), peaks=(3, 3, 15)), 3)
    batches = tuple(_batch(10 * step, step, "int64[4, 9]") for step in (1, 2, 3))
    of_sizes = tuple(replace(batch, batch_size=batch.step) for batch in batches)

    assert outlier_batch.RULE.look(Evidence(replace(capture, batches=batches)))[0].bytes == 12 * MIB
    assert outlier_batch.RULE.look(Evidence(replace(capture, batches=of_sizes))).outcome is Outcome.REFUTED


def _trials(capture, last):
    steps = tuple(replace(step, may_be_trial=step.step <= last) for step in capture.steps)
    return replace(capture, steps=steps)


def test_segments_that_fit_nothing_later_are_in_pieces():
    """Each block is larger than all before it: 272 MiB of segments, or 60 MiB of pages of 20 for the last of 48."""
    sizes = [(20 + 4 * place) * MIB for place in range(8)]
    blocks = [allocation_of(size, born=2 * i + 1, died=2 * i + 2) for i, size in enumerate(sizes)]
    (finding,) = fragmentation.RULE.look(Evidence(capture_of(*blocks)))

    assert finding.bytes == (272 - 60) * MIB
    assert finding.fixes[0].kind == "expandable-segments"


def test_little_beside_what_is_allocated_is_no_fragmentation():
    """Near miss: what is not used is a small part."""
    capture = capture_of(allocation_of(GIB, born=1))
    answer = fragmentation.RULE.look(Evidence(replace(capture, peak_reserved_bytes=GIB + 20 * MIB)))

    assert answer.why == "20.00 MiB of 1.02 GiB reserved were never allocated at once"


def test_a_segment_or_two_of_a_small_script_are_no_fragmentation():
    """Near miss: a large part of little."""
    capture = capture_of(allocation_of(20 * MIB, born=1))
    answer = fragmentation.RULE.look(Evidence(replace(capture, peak_reserved_bytes=40 * MIB)))

    assert answer.outcome is Outcome.REFUTED


def _with_classes(classes):
    logits = {"tensor": f"float32[32, {classes}]"}
    return capture_of(
        allocation_of(2 * MIB, born=1, tensor="float32[32, 64]"),
        allocation_of(4 * MIB, born=2, op="aten::addmm", **logits),
        allocation_of(4 * MIB, born=3, op="aten::_log_softmax", **logits),
        allocation_of(512, born=4, tensor="float32[]"),
    )


def _batch(tick, step, shapes, num_bytes=MIB):
    return BatchFact(tick=tick, step=step, loader=0, at="train.py:3", batch_size=4, bytes=num_bytes, shapes=shapes)


def _steps(inputs, peaks, tensor=""):
    """A step has its input if there is any, and an activation that fills it up to its peak."""
    allocations, steps = [], []
    for place, (size, peak) in enumerate(zip(inputs, peaks, strict=True)):
        first, step = 10 * place + 1, place + 1
        about = {"step": step, "source": "train.py:5"}
        if size:
            arrived = {"role": Role.INPUT, "tensor": tensor}
            allocations.append(allocation_of(size * MIB, born=first, died=first + 5, **arrived, **about))
        allocations.append(allocation_of((peak - size) * MIB, born=first + 1, died=first + 4, **about))
        steps.append(step_of(step, first, first + 9, [first + 2], peak_allocated_bytes=peak * MIB))
    return capture_of(*allocations, steps=steps)
