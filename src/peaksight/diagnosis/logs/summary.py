"""What happened, in one sentence."""

from peaksight.diagnosis.logs.case import Case
from peaksight.records import Memory, OomMessage, Phase
from peaksight.units import format_bytes

_WHERE = {
    Phase.INIT: "while loading",
    Phase.FORWARD: "in the forward",
    Phase.BACKWARD: "in the backward",
    Phase.OPTIMIZER: "in the optimizer step",
    Phase.EVALUATION: "in the evaluation",
    Phase.SAVE: "while saving",
}
_WHAT = {
    Memory.HOST: "The host ran out of memory (RAM), not the card",
    Memory.SHARED: "Shared memory (/dev/shm) ran out, not the card",
    Memory.KERNEL: "A kernel needs more on-chip memory than the card has; its GPU memory is not at fault",
    Memory.UNKNOWN: "Something reported out of memory without saying which",
}


def happened(case: Case) -> str:
    """The failure in one sentence, or what else the log holds."""
    message = case.message
    if case.is_prose:
        return _prose(case)
    if message is None:
        return _without_failure(case)
    if message.memory is not Memory.DEVICE:
        return f"{_WHAT[message.memory]}{_where(message)}."
    return f"{_device(message)} ran out of memory{_where(message)}{_asked(message)}."


def _without_failure(case: Case) -> str:
    messages = case.evidence.messages
    if not messages:
        return "No error message about memory; only words that point to a cause."
    if any(message.dialect == "killed-without-words" for message in messages):
        return "The process was killed without an error message."
    return f"No failure in the text, but {messages[0].framework} reports on memory."


def _prose(case: Case) -> str:
    """How far the figures of an explanation agree."""
    checks = case.evidence.claim_checks
    wrong = sum(not check.holds for check in checks)
    return f"An explanation, not a log: of {len(checks)} statements that were checked, {wrong} do not hold."


def _device(message: OomMessage) -> str:
    rank = f" of rank {message.rank}" if message.rank is not None else ""
    if message.device.isdigit():
        return f"Card {message.device}{rank}"
    return f"The device{rank}" if not message.device else f"The device's {message.device}{rank}"


def _where(message: OomMessage) -> str:
    at = f" at {message.at}" if message.at else ""
    when = f" {_WHERE[message.phase]}" if message.phase in _WHERE else ""
    step = f" of step {message.step}" if message.step is not None and when else ""
    return f"{at}{when}{step}"


def _asked(message: OomMessage) -> str:
    if message.requested_bytes is None:
        return ""
    free = f", with {format_bytes(message.free_bytes)} free" if message.free_bytes is not None else ""
    whole = f" of {format_bytes(message.capacity_bytes)}" if message.capacity_bytes is not None and free else ""
    return f", asked for {format_bytes(message.requested_bytes)}{free}{whole}"
