"""What a report calls its cards and ranks, and what it says of each of several."""

from peaksight.records import (
    DeviceReport,
    Gpu,
    RankDifference,
    Report,
)


def in_words(report: Report) -> str:
    """`a Tesla T4`, `2 Tesla T4`."""
    num_cards = max(len(report.devices), report.world_size)
    return f"{num_cards if num_cards > 1 else _article(report.gpu.name)} {report.gpu.name}"


def on_card(report: Report) -> str:
    """The card that the report is about, where that is not the first and only one: ` on cuda:1`, ` on rank 3`."""
    if report.world_size > 1:
        return f" on rank {report.rank}"
    return f" on {card_name(report.device)}" if report.device or len(report.devices) > 1 else ""


def card_name(index: int) -> str:
    """As PyTorch calls it: `cuda:1`."""
    return f"cuda:{index}"


def row_name(report: Report, card: DeviceReport) -> str:
    """What a card of several is called: by its rank where there are any, and its index where that is not enough."""
    if report.world_size == 1:
        return card_name(card.index)
    is_only = sum(other.rank == card.rank for other in report.devices) == 1
    return f"rank {card.rank}" if is_only else f"rank {card.rank}, {card_name(card.index)}"


def cards_title(report: Report) -> str:
    """Over the rows of cards."""
    return "Cards" if report.world_size == 1 else "Ranks"


def differences(report: Report) -> list[tuple[str, int, str]]:
    """Why ranks peak differently: what one has beyond another, its size, and the line."""
    return [(_beyond(each), abs(each.difference_bytes), each.source) for each in report.rank_differences]


def _beyond(difference: RankDifference) -> str:
    more = "more" if difference.difference_bytes > 0 else "less"
    return f"{more} {difference.category.replace('_', ' ')} than rank {difference.rank}"


def card_answer(card: DeviceReport) -> str:
    """Whether it fits this card of several, in two words."""
    return fit_words(card.fits, fails=card.oom is not None)


def fit_words(fits: bool | None, *, fails: bool = False) -> str:
    """Whether a run fits, in two words; `fails` is which way an open answer (None) leans."""
    if fails or fits is False:
        return "does not fit" if fits is False else "likely does not fit"
    return "fits" if fits else "likely fits"


def a_card(gpu: Gpu) -> str:
    """`a Tesla T4`, `an NVIDIA H200`."""
    return f"{_article(gpu.name)} {gpu.name}"


def _article(name: str) -> str:
    return "an" if name.startswith(("NVIDIA", "A", "E", "I", "O", "U")) else "a"
