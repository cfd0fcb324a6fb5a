"""The tables of nvidia-smi."""

import re

from peaksight.postmortem.figures import SIZE
from peaksight.postmortem.grammar import Dialect
from peaksight.records import Memory

_ROW = (
    r"\|\s+(?P<device>\d{1,3})\s+(?:\S{1,4}\s+\S{1,4}\s+)?(?P<pid>\d{1,12})\s+(?:C|G|C\+G|M\+C)\s+\S.{0,200}?\s"
    r"(?P<size>\d+MiB)\s*\|"
)

PROCESSES = Dialect(
    name="nvidia-smi-processes",
    framework="nvidia-smi",
    memory=Memory.DEVICE,
    start=re.compile(_ROW),
    needles=("mib |", "mib|"),
    processes=re.compile(_ROW),
    is_warning=True,
    span=400,
)

CARD = Dialect(
    name="nvidia-smi-card",
    framework="nvidia-smi",
    memory=Memory.DEVICE,
    start=re.compile(rf"\|\s+{SIZE} / {SIZE}\s+\|"),
    needles=("mib / ", "mib /"),
    clauses=(
        ("used", re.compile(rf"\|\s+({SIZE}) / ")),
        ("capacity", re.compile(rf" / ({SIZE})\s+\|")),
    ),
    is_warning=True,
    span=200,
)

DIALECTS = (PROCESSES, CARD)
