"""Builders of the facts on passes: calls of models, backward passes, their terms, and who holds a block."""

from peaksight.records import BackwardFact, CallFact, Hold, Phase, TermFact


def call_of(first_tick, last_tick, **about):
    """A recorded call of a model in training, in step 1 unless `about` says otherwise."""
    facts = {"step": 1, "module": "Model", "training": True, "recorded": True}
    return CallFact(first_tick=first_tick, last_tick=last_tick, **(facts | about))


def backward_of(number, tick, **about):
    """A backward pass that keeps nothing, in step 1 unless `about` says otherwise."""
    facts = {"step": 1, "at": "train.py:9", "retains_graph": False, "creates_graph": False}
    return BackwardFact(number=number, tick=tick, **(facts | about))


def term_of(backward, first_born):
    """A term of the loss of a backward pass."""
    return TermFact(backward=backward, first_born=first_born)


def hold_of(born, name, *, tick, shown_bytes=0, **about):
    """A look at which the block born at `born` had a name, in the forward of step 1 unless `about` says otherwise."""
    facts = {"step": 1, "phase": Phase.FORWARD, "where": "train.py:main", "by_graph": False}
    return Hold(tick=tick, born=born, name=name, shown_bytes=shown_bytes, **(facts | about))
