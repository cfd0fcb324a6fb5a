"""Which frames of a running script are shown."""

import torch

from peaksight.virtual_gpu import frames
from peaksight.virtual_gpu.frames import visible

OURS = frames.__file__
RUNNER = OURS.replace("frames.py", "script/runner.py")
TORCH = torch.__file__.removesuffix("__init__.py")


def running(*files):
    """Code of a function in each of `files`: a path, or a path of torch after `torch:`."""
    return [compile("", file.replace("torch:", TORCH), "exec") for file in files]


def shown(*files):
    """The `files` that are left."""
    return [files[position] for position in visible(running(*files))]


def test_ours_are_left_out():
    """Anywhere, and what started the run too."""
    assert ["train.py", "torch:nn/modules/linear.py"] == shown(
        "click/core.py", OURS, RUNNER, "train.py", OURS, "torch:nn/modules/linear.py", OURS
    )


def test_the_operator_ends_the_stack():
    """What runs for a fake tensor has no frames on the card."""
    way = ("torch:_ops.py", OURS, "torch:_compile.py", "torch:utils/_stats.py", "torch:_subclasses/fake_tensor.py")

    assert ["train.py"] == shown("train.py", OURS, *way, "torch:_decomp/decompositions.py")
    assert ["train.py", "torch:_ops.py"] == shown("train.py", "torch:_ops.py")
    assert ["train.py"] == shown("train.py", OURS, "torch:_ops.py", OURS)


def test_the_detour_through_a_function_mode_is_left_out():
    """The function of torch that asked the mode is called by it again."""
    dropout, overrides, ours = running("torch:nn/functional.py", "torch:overrides.py", OURS)

    assert [3] == visible([dropout, overrides, ours, dropout])
    assert [2] == visible([dropout, overrides, dropout])
    assert [0] == visible([dropout, overrides, ours])
    assert [0, 1] == visible([dropout, overrides])
