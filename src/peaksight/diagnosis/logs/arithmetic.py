"""What the figures of a message add up to, and where they contradict each other."""

from collections.abc import Iterator

from peaksight.diagnosis.logs.accounts import Account, account_of
from peaksight.records import Check, OomMessage
from peaksight.units import GIB, MIB, format_bytes

NEAR_MISS_BYTES = 64 * MIB
# What the driver may need beside a new segment, for its pages and tables.
DRIVER_SLACK_BYTES = 32 * MIB


def check_message(message: OomMessage) -> list[Check]:
    """The arithmetic of one message, what matters most first."""
    account = account_of(message)
    return [
        *_sentinels(message),
        *_request(message),
        *_pool(message),
        *_card(account),
        *_own(account),
        *_caps(message),
        *_program(message),
    ]


def _sentinels(message: OomMessage) -> Iterator[Check]:
    for figure in message.figures:
        if figure.bytes is None:
            text = (
                f"{figure.name} is printed as {figure.printed}: that is 2^64 bytes, which stands for unknown or "
                f"no limit."
            )
            yield Check(name="sentinel", text=text, holds=True)


def _request(message: OomMessage) -> Iterator[Check]:
    """The request beside the card, what is free, and what the allocator keeps idle."""
    requested, free, idle = message.requested_bytes, message.free_bytes, message.idle_bytes
    if requested is None:
        return
    asked = format_bytes(requested)
    if message.capacity_bytes is not None and requested > message.capacity_bytes:
        times = requested / max(message.capacity_bytes, 1)
        text = f"{asked} asked of a card of {format_bytes(message.capacity_bytes)}: {times:.1f} times all of it."
        yield Check(name="more-than-the-card", text=text, holds=True)
    if free is None:
        return
    if is_plain_shortage(message):
        yield _shortage(asked, requested, free)
    else:
        text = f"{format_bytes(free)} free, {asked} asked: not a plain shortage."
        yield Check(name="free-but-refused", text=text, holds=False)
    if idle is not None and idle > 0:
        yield _idle(requested, free, idle)


def _shortage(asked: str, requested: int, free: int) -> Check:
    missing = requested - free
    if missing <= 0:
        text = f"{asked} asked, {format_bytes(free)} free: full, for the driver needs some MiB more than a segment."
        return Check(name="shortage", text=text, holds=True)
    near = "a near miss, by " if missing <= NEAR_MISS_BYTES < requested else "short by "
    text = f"{asked} asked, {format_bytes(free)} free: {near}{format_bytes(missing)}."
    return Check(name="shortage", text=text, holds=True)


def _idle(requested: int, free: int, idle: int) -> Check:
    if free + idle < requested:
        text = (
            f"{format_bytes(free)} free + {format_bytes(idle)} idle < {format_bytes(requested)} asked: not "
            f"fragmentation."
        )
        return Check(name="not-fragmentation", text=text, holds=True)
    text = (
        f"{format_bytes(idle)} idle in the allocator + {format_bytes(free)} free >= {format_bytes(requested)} asked: "
        f"it lies in "
        "pieces too small, which alone does not prove that fragmentation is the cause."
    )
    return Check(name="idle-in-pieces", text=text, holds=True)


def is_plain_shortage(message: OomMessage) -> bool:
    """Whether less is free than was asked for, within the rounding of the printed figures."""
    if message.requested_bytes is None or message.free_bytes is None:
        return True
    margin = sum(figure.margin_bytes for name in ("requested", "free") if (figure := message.figure(name)))
    return message.requested_bytes > message.free_bytes - margin - DRIVER_SLACK_BYTES


def _pool(message: OomMessage) -> Iterator[Check]:
    allocated, reserved, idle = message.allocated_bytes, message.reserved_bytes, message.idle_bytes
    if allocated is None or reserved is None or idle is None:
        return
    margin = sum(figure.margin_bytes for name in ("allocated", "reserved") if (figure := message.figure(name)))
    if allocated > reserved + margin:
        text = f"{format_bytes(allocated)} allocated is more than {format_bytes(reserved)} reserved, which cannot be."
        yield Check(name="allocated-over-reserved", text=text, holds=False)
    else:
        text = (
            f"{format_bytes(allocated)} in tensors + {format_bytes(idle)} idle = {format_bytes(reserved)} "
            f"reserved by PyTorch."
        )
        yield Check(name="pool", text=text, holds=True)


def _card(account: Account) -> Iterator[Check]:
    """Whether all that is printed adds up to the card."""
    message, unexplained = account.message, account.unexplained_bytes
    if unexplained is None or message.capacity_bytes is None or message.free_bytes is None:
        return
    held = account.own_bytes if account.own_bytes is not None else account.pool_bytes or 0
    total = held + account.others_bytes + message.free_bytes
    if total > message.capacity_bytes + account.margin_bytes + MIB * 16:
        yield _more_than_capacity(account, total, message.capacity_bytes)
    elif unexplained <= max(account.margin_bytes, 64 * MIB):
        yield Check(
            name="adds-up", text=f"{_sum(account)} = {format_bytes(message.capacity_bytes)}: it adds up.", holds=True
        )
    else:
        yield _rest(account, unexplained, message.capacity_bytes)


def _more_than_capacity(account: Account, total: int, capacity: int) -> Check:
    """More is held than there is: where nothing is free, Windows' driver has lent the host's memory."""
    text = f"{_sum(account)} = {format_bytes(total)}, more than the card's {format_bytes(capacity)}"
    if account.message.free_bytes == 0:
        text += ": on Windows the driver lends memory of the host, which is slow"
        return Check(name="lent-by-the-host", text=f"{text}.", holds=True)
    return Check(name="more-than-capacity", text=f"{text}.", holds=False)


def _rest(account: Account, unexplained: int, capacity: int) -> Check:
    who = "context and libraries, other processes" if account.own_bytes is None else "processes that are not listed"
    text = f"{format_bytes(capacity)} - ({_sum(account)}) = {format_bytes(unexplained)} held elsewhere: {who}."
    return Check(name="held-elsewhere", text=text, holds=True)


def _sum(account: Account) -> str:
    message = account.message
    own = account.own_bytes if account.own_bytes is not None else account.pool_bytes or 0
    name = "this process" if account.own_bytes is not None else "reserved"
    parts = [f"{format_bytes(own)} {name}"]
    parts += [f"{format_bytes(process.bytes)} process {process.pid}" for process in account.others]
    return " + ".join([*parts, f"{format_bytes(message.free_bytes or 0)} free"])


def _own(account: Account) -> Iterator[Check]:
    if account.own_as is not None:
        text = (
            f"Process {account.own_as} is this process, seen from outside its container: what PyTorch reserved "
            f"explains "
            "what it holds, and there is no room for both."
        )
        yield Check(name="own-process", text=text, holds=True)
    outside = account.outside_bytes
    if outside is not None and outside > 16 * MIB:
        text = f"{format_bytes(outside)} of this process is not PyTorch's allocator: CUDA context, kernels, NCCL."
        yield Check(name="outside", text=text, holds=True)


def _caps(message: OomMessage) -> Iterator[Check]:
    limit, requested = message.limit_bytes, message.requested_bytes
    held = message.reserved_bytes if message.reserved_bytes is not None else message.allocated_bytes
    other = message.figure("other")
    if limit is None or requested is None or held is None:
        return
    beside = f" + {format_bytes(other.bytes)} others" if other and other.bytes else ""
    total = held + requested + (other.bytes or 0 if other else 0)
    over = total > limit - GIB // 100
    text = (
        f"{format_bytes(held)} held{beside} + {format_bytes(requested)} asked = {format_bytes(total)} "
        f"{'>' if over else '<'} {format_bytes(limit)} allowed."
    )
    yield Check(name="limit", text=text, holds=over)


def _program(message: OomMessage) -> Iterator[Check]:
    """What a compiled program holds: arguments, results and temporaries."""
    total = message.figure("program")
    names = {"parameters": "arguments", "constants": "constants", "live_out": "results", "temporaries": "temporaries"}
    parts = {words: figure for name, words in names.items() if (figure := message.figure(name)) and figure.bytes}
    if message.dialect != "xla-buffer-assignment" or not total or not total.bytes or not parts:
        return
    shown = " + ".join(f"{figure.printed} {words}" for words, figure in parts.items())
    text = f"{shown} = {total.printed}, what the program needs beside everything else on the device."
    holds = abs(sum(figure.bytes or 0 for figure in parts.values()) - total.bytes) <= 0.02 * total.bytes
    yield Check(name="program", text=text, holds=holds)


def check_all(messages: tuple[OomMessage, ...]) -> list[Check]:
    """The checks of every message, each said once."""
    seen: dict[str, Check] = {}
    for check in (*_pool_of_bfc(messages), *(check for message in messages for check in check_message(message))):
        seen.setdefault(check.text, check)
    return list(seen.values())


def _pool_of_bfc(messages: tuple[OomMessage, ...]) -> Iterator[Check]:
    """The statistics of TensorFlow's allocator beside the tensor that it could not give."""
    stats = next((message for message in messages if message.dialect == "bfc-statistics"), None)
    asking = [message for message in messages if message.dialect in {"tensorflow-tensor", "bfc-allocator"}]
    asked = next((message.requested_bytes for message in asking if message.requested_bytes), None)
    if stats is None or asked is None or stats.limit_bytes is None or stats.allocated_bytes is None:
        return
    total = stats.allocated_bytes + asked
    over = total > stats.limit_bytes
    text = (
        f"{format_bytes(stats.allocated_bytes)} in use + {format_bytes(asked)} asked = {format_bytes(total)} "
        f"{'>' if over else '<='} {format_bytes(stats.limit_bytes)}, the pool's limit{'' if over else ': in pieces'}."
    )
    yield Check(name="bfc-pool", text=text, holds=True)
