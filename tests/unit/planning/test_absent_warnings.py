"""Warnings that would say that a plan is of no use."""

from peaksight.planning.absent_warnings import absent_warnings
from peaksight.records.plan import Change


def test_each_once():
    """Of the kinds of changes that have one."""
    kinds = ("micro-batches", "checkpoint-modules", "checkpoint-modules", "autocast", "micro-batches")

    schedule, reentrant = absent_warnings([Change(kind=kind) for kind in kinds])

    assert "lr_scheduler.step()" in schedule and "requires_grad" in reentrant
