"""Files of torch, as frames name them."""

# Frames that every operation passes through: they say nothing about where it came from.
PLUMBING = (
    "torch/_ops.py",
    "torch/_subclasses/",
    "torch/_library/",
    "torch/_compile.py",
    "torch/_dynamo/",
    "torch/overrides.py",
    "torch/utils/_contextlib.py",
    "torch/utils/_stats.py",
)
