"""Flame graphs of the live set, by the schema of https://www.speedscope.app/file-format-schema.json."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import holder_of, oom_of, report_of
from peaksight.records import Category
from peaksight.reporting.exports.speedscope import report_to_speedscope
from peaksight.units import GIB, MIB

HOLDERS = (
    holder_of(4 * GIB, Category.ACTIVATION, source="train.py:7", module="Net.h.0.mlp"),
    holder_of(2 * GIB, Category.ACTIVATION, source="train.py:7", module="Net.h.1.mlp", tensor="float32[2]"),
    holder_of(MIB, Category.OPTIMIZER_STATE, source="", op="aten::zeros"),
)


def speedscope_of(report):
    return json.loads(report_to_speedscope(report))


def stacks_of(file, profile):
    """Names of boxes from the root, with their bytes."""
    names = [frame["name"] for frame in file["shared"]["frames"]]
    return [
        ([names[frame] for frame in stack], size)
        for stack, size in zip(profile["samples"], profile["weights"], strict=True)
    ]


@given(sizes=st.lists(st.integers(1, GIB), max_size=6))
def test_it_follows_the_schema(sizes):
    """Required fields have their types, samples are of frames that exist, and a profile is as wide as its samples."""
    holders = [holder_of(size, Category.OTHER, module="a." * index) for index, size in enumerate(sizes)]
    file = speedscope_of(report_of(*holders))

    assert "https://www.speedscope.app/file-format-schema.json" == file["$schema"]
    assert all({"name"} <= set(frame) <= {"name", "file", "line"} for frame in file["shared"]["frames"])
    for profile in file["profiles"]:
        assert {"type", "name", "unit", "startValue", "endValue", "samples", "weights"} == set(profile)
        assert ("sampled", "bytes", 0) == (profile["type"], profile["unit"], profile["startValue"])
        assert profile["endValue"] == sum(profile["weights"]) == sum(sizes)
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= frame < len(file["shared"]["frames"]) for stack in profile["samples"] for frame in stack)


def test_from_module_to_line_to_tensor():
    """The box of a module is known by its path; what has neither module nor line says so."""
    file = speedscope_of(report_of(*HOLDERS))
    by_module, by_category = file["profiles"]

    assert [
        (["(outside any module)", "(no line)", "optimizer state: aten::zeros"], MIB),
        (["Net", "h", "0", "mlp", "train.py:7", "activation: aten::empty"], 4 * GIB),
        (["Net", "h", "1", "mlp", "train.py:7", "activation: float32[2] aten::empty"], 2 * GIB),
    ] == stacks_of(file, by_module)
    assert (["activation", "train.py:7", "Net.h.0.mlp", "aten::empty"], 4 * GIB) in stacks_of(file, by_category)
    assert {"name": "mlp", "file": "Net.h.1.mlp"} in file["shared"]["frames"]
    assert {"name": "train.py:7", "file": "train.py", "line": 7} in file["shared"]["frames"]


@pytest.mark.parametrize("live", [(), HOLDERS])
def test_the_failure_is_a_moment_of_its_own(live):
    """Where it is known what was alive."""
    file = speedscope_of(report_of(*HOLDERS, fits=False, oom=oom_of(GIB, live=live)))
    moments = {profile["name"].split(",")[0] for profile in file["profiles"]}

    assert moments == ({"peak", "out of memory"} if live else {"peak"})
