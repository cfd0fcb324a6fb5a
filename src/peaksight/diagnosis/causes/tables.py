"""What nvidia-smi's tables show."""

from collections import Counter
from collections.abc import Iterator

from peaksight.diagnosis.rules import Case, Finding
from peaksight.records import Cause, Confidence, ProcessUse
from peaksight.units import GIB, format_bytes

_FEW = 2


def extra_contexts(case: Case) -> Iterator[Finding]:
    """Several processes with about a context each beside a large one on one card: ranks that touch card 0 too."""
    rows = [process for message in case.of_dialect("nvidia-smi-processes") for process in message.processes]
    for device in sorted({row.device for row in rows}):
        own = [row for row in rows if row.device == device]
        small = [row for row in own if row.bytes < 1.5 * GIB and row.bytes < max(r.bytes for r in own) / 2]
        if len(small) >= _FEW or _repeated(rows):
            yield Finding(_extra(device, small, own), 60)
            return


def _repeated(rows: list[ProcessUse]) -> bool:
    """Whether one process holds memory of two cards."""
    cards = Counter(pid for pid, _ in {(row.pid, row.device) for row in rows})
    return any(count > 1 for count in cards.values())


def _extra(device: str, small: list[ProcessUse], own: list[ProcessUse]) -> Cause:
    return Cause(
        kind="ddp-extra-context-gpu0",
        title=f"Ranks of other cards also hold memory on card {device}: a context each, or what they loaded there",
        confidence=Confidence.LIKELY,
        evidence=(
            f"{len(own)} processes on card {device}, {len(small)} of them with about "
            f"{format_bytes(small[0].bytes) if small else '-'} each",
        ),
        try_first="torch.cuda.set_device(local_rank) before anything else; torch.load(..., map_location='cpu').",
    )


RULES = (extra_contexts,)
