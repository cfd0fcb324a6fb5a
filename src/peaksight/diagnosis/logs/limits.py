"""What the text does not say, and what to run to know it."""

import re
from collections.abc import Iterator

from peaksight.diagnosis.logs.cards import card_of
from peaksight.diagnosis.logs.case import Case
from peaksight.records import Cause, Confidence, Memory
from peaksight.units import GIB, MIB

# What a virtual GPU for PyTorch cannot run.
_NOT_PYTORCH = ("XLA", "TensorFlow", "Paddle", "CuPy", "RMM", "Metal", "vLLM")
_NO_SCRIPT = "train.py"


def cannot_tell(case: Case, causes: tuple[Cause, ...]) -> tuple[str, ...]:
    """What the message cannot tell, most important first."""
    return tuple(_unknowns(case, causes))


def _unknowns(case: Case, causes: tuple[Cause, ...]) -> Iterator[str]:
    message = case.message
    if not causes or causes[0].confidence is Confidence.POSSIBLE:
        more = " What is listed is what such a text often comes from." if causes else ""
        yield f"The cause: cannot tell from this text.{more}"
    if message is None or message.memory is not Memory.DEVICE:
        return
    yield "What the memory holds (weights, activations, optimizer state): a message counts bytes, not tensors."
    if not message.at:
        yield "Which line asked: there is no traceback."
    if message.requested_bytes is not None and message.dialect.startswith("torch"):
        yield from _coarse(message.requested_bytes)
    if message.free_bytes is None and message.capacity_bytes is None:
        yield "How full the device was: no sizes of it are printed."


def _coarse(requested_bytes: int) -> Iterator[str]:
    if requested_bytes == 2 * MIB:
        yield "The tensor's size: 2.00 MiB is a new segment for tensors up to 1 MiB."
    elif requested_bytes == 20 * MIB:
        yield "The tensor's size: 20.00 MiB is a new segment for tensors from 1 to 10 MiB."
    elif requested_bytes < GIB:
        yield "The tensor's size to the byte: requests from 10 MiB on are rounded up to 2 MiB."
    else:
        yield "The tensor's size to the byte: it is printed to two digits of a GiB."


def next_command(case: Case) -> str:
    """The command that shows what the text cannot: the job on a virtual GPU."""
    message = case.message
    others = [message] if message else case.evidence.messages
    if any(other.memory in {Memory.HOST, Memory.SHARED, Memory.KERNEL} for other in others):
        return ""
    if message is not None and message.framework.startswith(_NOT_PYTORCH):
        return ""
    return " ".join(["peaksight run", *_card(case), _script(case.evidence.command)])


def _card(case: Case) -> Iterator[str]:
    """The options that name the card, and the size that the message prints where the card's own is another."""
    capacity = case.message.capacity_bytes if case.message else None
    card = card_of(case.evidence, case.message)
    if card:
        yield f"--gpu {card.name}"
    if capacity and (card is None or f"{card.total_bytes / GIB:.2f}" != f"{capacity / GIB:.2f}"):
        yield f"--memory {capacity / GIB:.2f}GiB"


def _script(command: str) -> str:
    """What the log shows was typed, or a placeholder; of the deepspeed launcher, which is not simulated, its script."""
    script = re.search(r"\S+\.py\b.*", command) if command.startswith("deepspeed ") else None
    return script[0] if script else command or _NO_SCRIPT
