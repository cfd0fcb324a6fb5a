"""Reads the table of cards and finds one by name."""

import re
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from peaksight.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known of one card.

    `name` is what `--gpu` takes, `product_name` what `torch.cuda.get_device_name` prints, `total_bytes` what torch
    reports as `total_memory`; `source` says how that number is known. `half_flop_per_second` is the dense rate of
    the tensor cores with fp32 accumulation: bf16 from capability 8.0 on, fp16 before. `context_bytes` is what
    nvidia-smi shows for a process with a bare CUDA context, None where nobody measured it.
    """

    name: str
    product_name: str
    total_bytes: int
    multi_processor_count: int
    capability: tuple[int, int]
    bandwidth_bytes_per_second: int
    half_flop_per_second: float
    fp32_flop_per_second: float
    l2_bytes: int
    source: str
    context_bytes: int | None = None


@cache
def known_cards() -> tuple[Card, ...]:
    """Every card of the table, in its order."""
    table = tomllib.loads((files("peaksight.gpus") / "cards.toml").read_text(encoding="utf-8"))
    return tuple(
        Card(**{**facts, "name": name, "capability": tuple(facts["capability"])}) for name, facts in table.items()
    )


def find_card(name: str) -> Card:
    """The card called `name`: as `--gpu` takes it or as torch prints it, in any case; UsageError for an unknown one."""
    by_name = {_normalize(known): card for card in known_cards() for known in (card.name, card.product_name)}
    if card := by_name.get(_normalize(name)):
        return card
    raise UsageError(
        f"Unknown GPU {name!r}{_hint(name.lower())}: `peaksight gpus` lists the known ones; for another card, name "
        "a near one and give its size with --memory.",
        slug="unknown-gpu",
    )


def _hint(name: str) -> str:
    """Up to three names of the table that `name` may have meant, as the rest of a sentence."""
    names = [card.name for card in known_cards()]
    nearest = [known for known in names if name and name in known] or get_close_matches(name, names, cutoff=0.5)
    return f" (did you mean {' or '.join(nearest[:3])}?)" if nearest else ""


def _normalize(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name.lower())
