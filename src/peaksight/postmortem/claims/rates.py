"""Rates: samples of a batch over devices, and shares of all samples of a training."""

import re
from collections.abc import Iterator

from peaksight.postmortem.claims.rows import NUMBER, number
from peaksight.records import Check

_DEVICES = r"(?:device|GPU|rank|card)"
_PER_DEVICE = re.compile(
    rf"batch(?:[_ ]size)?\W{{1,5}}({NUMBER}) per {_DEVICES}[^.\n]{{0,20}}?({NUMBER}) {_DEVICES}s? ?= ?({NUMBER})\b",
    re.I,
)
_OF_ALL = re.compile(
    rf"({NUMBER}) (?:\w+ )?samples (?:across|over|in|of) ({NUMBER}) steps = \**([\d.]{{1,8}})\s?%", re.I
)
_EACH_STEP = re.compile(rf"each (?:training )?step (?:processes|sees|takes|has) ({NUMBER}) samples", re.I)
_TOLERANCE = 0.05


def check_rates(text: str) -> Iterator[Check]:
    """Each rate that can be worked out."""
    for match in _PER_DEVICE.finditer(text):
        each, devices, said = (number(group) for group in match.groups())
        shown = f"{match[1]} on each of {match[2]} is {each * devices:g} in a step; the text says {match[3]}."
        yield Check(name="per-device", text=shown, holds=each * devices == said)
    yield from _of_all(text)


def _of_all(text: str) -> Iterator[Check]:
    """`20 samples across 2000 steps = 0.125 %`, where a step has 8."""
    step = _EACH_STEP.search(text)
    for match in _OF_ALL.finditer(text) if step else ():
        some, steps, said = number(match[1]), number(match[2]), float(match[3])
        whole = steps * number(step[1]) if step else 0.0
        percent = 100 * some / whole if whole else 0.0
        shown = f"{match[1]} of {whole:,.0f} samples in {match[2]} steps are {percent:.3g} %; the text says {said:g} %."
        yield Check(name="samples", text=shown, holds=abs(percent - said) <= _TOLERANCE * percent)
