"""What nvidia-smi's tables show."""

from collections import Counter
from collections.abc import Iterator

from peaksight.diagnosis.logs.case import Case, Finding
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


def held_by_nobody(case: Case) -> Iterator[Finding]:
    """The card is in use, and nvidia-smi lists no process: it is in another container, or dead and not gone."""
    if case.failures or case.of_dialect("nvidia-smi-processes"):
        return
    for card in case.of_dialect("nvidia-smi-card"):
        used, capacity = card.figure("used"), card.figure("capacity")
        if used and capacity and used.bytes and capacity.bytes and used.bytes > 0.1 * capacity.bytes:
            cause = Cause(
                kind="other-process-holds-card",
                title="Memory of the card is held by a process that is not listed: in another container, or a zombie",
                confidence=Confidence.LIKELY,
                evidence=(f"{used.printed} of {capacity.printed} in use, and no process in the table",),
                try_first="fuser -v /dev/nvidia*, and end what is left over; outside the container nvidia-smi "
                "lists it.",
            )
            yield Finding(cause, 50)
            return


RULES = (extra_contexts, held_by_nobody)
