"""docs/operators.md: how many cases take the same memory on the virtual card, and which do not."""

from collections import Counter, defaultdict
from datetime import date

import torch

from benchmarks.operators.comparison import KINDS, Difference
from benchmarks.operators.recording import peak

COLUMNS = (*KINDS, "error")
MAX_WORST = 60
HEAD = """\
# Operators

Written by `make operators`: {cases:,} calls of operators, modules and optimizers, each compared with what a real card
did.

- Measured: NVIDIA H200, torch 2.11.0+cu130, cuDNN 9.19, 2026-11-28 (`python -m benchmarks.operators measure`): the
  allocator's events of the second call, forward and backward.
- Simulated on {today}: torch {torch} with the device rules of {build}. Calls that this release makes otherwise are
  left out.
- *same*: the same blocks taken and given back in the same order. *order*: the same blocks and the same peak. *blocks*:
  the same peak. *peak*: another peak. *error*: the simulation failed.
- The calls of *operator*, *module* and *optimizer* are the samples of PyTorch's own tests in two sizes; the others are
  of the sizes of a training run.

"""


class Page:
    """Collects differences."""

    def __init__(self) -> None:
        """Empty."""
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._worst: dict[str, tuple[int, str]] = {}
        self._differing: Counter[str] = Counter()

    def add(self, difference: Difference) -> None:
        """Count one case; keep the worst of its operator."""
        source = difference.name.partition(" ")[0]
        self._counts[difference.name if source == "layer" else source][difference.kind] += 1
        if difference.kind in ("peak", "error"):
            self._differing[difference.name] += 1
            off = max((abs(peak(v or []) - peak(r or [])) for r, v in difference.events.values()), default=0)
            self._worst[difference.name] = max(self._worst.get(difference.name, (0, "")), (off, difference.signature))

    def text(self, build: str) -> str:
        """The page."""
        cases = sum(sum(counts.values()) for counts in self._counts.values())
        head = HEAD.format(cases=cases, today=date.today(), torch=torch.__version__, build=build)
        return head + self._table() + "\n" + self._worst_ones()

    def _table(self) -> str:
        lines = [f"| cases | {' | '.join(COLUMNS)} |", f"|---|{'---:|' * len(COLUMNS)}"]
        total = sum(self._counts.values(), Counter())
        for name, counts in [*sorted(self._counts.items()), ("all", total)]:
            lines.append(f"| {name} | {' | '.join(f'{counts[kind]:,}' for kind in COLUMNS)} |")
        return "\n".join(lines) + "\n"

    def _worst_ones(self) -> str:
        ordered = sorted(self._worst.items(), key=lambda item: -item[1][0])
        lines = [f"## Where the peak differs\n\n{len(ordered)} operators and families; the largest differences:\n"]
        lines += ["| operator | cases | bytes off | in the call |", "|---|---:|---:|---|"]
        for name, (off, signature) in ordered[:MAX_WORST]:
            lines.append(f"| {name} | {self._differing[name]} | {off:,} | `{_short(signature)}` |")
        return "\n".join(lines) + "\n"


def _short(signature: str) -> str:
    clean = signature.replace("|", "/").replace("`", "'")
    return clean if len(clean) <= 90 else clean[:87] + "..."
