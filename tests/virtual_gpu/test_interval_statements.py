"""GIVEN the text of a file, THEN work that is done for all and used in part is found; what is used otherwise is not."""

import ast
import textwrap

import pytest
import torch

from peaksight.virtual_gpu.evidence.interval_statements import works_before_intervals
from peaksight.virtual_gpu.unreached.probed_files import ProbedFile
from peaksight.virtual_gpu.unreached.probes import Hits

from .cards import h100

pytestmark = pytest.mark.torch


def facts_of(source):
    return list(works_before_intervals(ProbedFile("train.py", ast.parse(textwrap.dedent(source)), Hits())))


def works_in(source):
    return [(fact.kind, fact.at, fact.name, fact.where, fact.used_as) for fact in facts_of(source)]


def test_a_slice_of_what_was_computed_for_all():
    assert works_in(
        """
        def forward(self, graphs):
            _, vectors = eigh(graphs)
            vectors = vectors.view(4, -1)
            vectors = vectors[:, ::self.interval]
            return self.project(vectors)
        """
    ) == [("slice-after-work", "train.py:3", "vectors", "train.py:forward", "vectors[:, ::self.interval]")]


def test_a_result_that_is_used_at_an_interval():
    assert works_in(
        """
        for step in range(100):
            target = teacher(x)
            log_now = step % 10 == 0
            if log_now:
                print(target.mean())
        """
    ) == [("interval-after-work", "train.py:3", "target", "train.py:<module>", "if log_now")]


@pytest.mark.parametrize(
    "source",
    [
        "x = f(y)\na = x[::2] + x[1::2]",
        "x = f(y)\na = x[::k]\nb = x.sum()",
        "x = f(y[::k])",
        "x = f(y)\na = x[::1]\n",
        "x = f(y)\na = x[::-1]\n",
        "x = y\na = x[::k]\n",
        "x = f(y)\na = g(x)[::k]",
        "out = f(x)\nif step % 10 == 0: log(out)\nout.backward()",
        "out = f(x)\nif debug: log(out)",
        "if step % 10 == 0:\n    out = f(x)\n    log(out)",
        "x = f(y)\ndef later(): return x\na = x[::k]",
    ],
)
def test_what_is_used_otherwise_too_or_not_at_an_interval_is_none(source):
    assert works_in(source) == []


def test_a_function_that_only_the_work_calls_has_its_lines():
    source = """
    def entropy(logits):
        return logits.exp().sum()
    for step in range(9):
        value = entropy(logits)
        if step % 5 == 0: print(value)
    """
    (fact,) = facts_of(source)
    assert (fact.inside_first, fact.inside_last) == (2, 3)
    (fact,) = facts_of(source + "\n    entropy(x)")
    assert (fact.inside_first, fact.inside_last) == (0, 0)


def test_slices_are_known_by_their_largest_step():
    """GIVEN slices of one line, THEN an interval that was one all the time is known from another."""
    with h100() as gpu:
        rows = torch.ones(8, 4, device="cuda")
        for step in (1, 2):
            rows[::step, :2]
        rows[:4]
    first, last = gpu.witness.largest_steps.values()

    assert (first, last) == (2, 1)
