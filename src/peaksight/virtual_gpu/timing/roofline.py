"""The seconds of one operator on a card: a roofline over what its kernels compute and move."""

from dataclasses import dataclass
from typing import Any

from peaksight.gpus import Card
from peaksight.virtual_gpu.timing.efficiencies import Kind, Reach, efficiencies
from peaksight.virtual_gpu.timing.kinds import arithmetic_of, kind_of
from peaksight.virtual_gpu.timing.work import Work, work_of

# How much of the L2 cache serves what a kernel touches: beyond it, lines are gone before they are read again.
_L2_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Cost:
    """One operator: its work, the seconds of its kernels, and what its host takes beside the cost of every operator.

    `tf32_seconds` are those where the script lets float32 be multiplied so, None where that makes no difference.
    """

    work: Work
    seconds: float
    tf32_seconds: float | None
    host_seconds: float
    kind: str


def cost_of(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, card: Card) -> Cost:
    """What `func(*args, **kwargs)`, which returned `out`, costs on `card`."""
    work = work_of(func, args, kwargs, out)
    kind = efficiencies(card).kinds[kind_of(func, args, kwargs, out)]
    arithmetic = arithmetic_of(args, out)
    seconds = seconds_of(work, kind, arithmetic, card)
    with_tf32 = seconds_of(work, kind, "tf32", card) if arithmetic == "fp32" and work.flops else None
    host_seconds = (
        kind.host_seconds + kind.tensor_seconds * work.num_tensors + kind.result_seconds * work.num_new_tensors
    )
    return Cost(work, seconds, with_tf32, host_seconds, kind.name)


def seconds_of(work: Work, kind: Kind, arithmetic: str, card: Card) -> float:
    """What the card takes for `work`: what a kernel takes at least, and the longer of computing and moving."""
    reach = kind.reach(arithmetic)
    return work.kernels * reach.seconds + max(_computing(work, reach, arithmetic, card), _moving(work, reach, card))


def _computing(work: Work, reach: Reach, arithmetic: str, card: Card) -> float:
    if not reach.flops:
        return 0.0
    flops = work.flops / 2 if work.skips_half else work.flops
    return flops / (reach.flops * float(getattr(card, f"{arithmetic}_flop_per_second")))


def _moving(work: Work, reach: Reach, card: Card) -> float:
    """A kernel with a block for each channel leaves the other multiprocessors idle."""
    is_in_l2 = work.bytes <= _L2_SHARE * card.l2_bytes
    fraction = reach.bandwidth_in_l2 if is_in_l2 else reach.bandwidth
    busy = min(1.0, work.num_blocks / card.multi_processor_count) if work.num_blocks else 1.0
    return work.bytes / (busy * fraction * card.bandwidth_bytes_per_second)
