"""Sizes within sentences: `7.5 GB for the decomposition`, and the cards that are named."""

import re
from collections.abc import Iterator, Sequence

from peaksight.postmortem.claims.parts import cards, line_of
from peaksight.postmortem.claims.rows import sizes
from peaksight.records import Claim

# What is behind a size, up to the next sign: articles are no part of the name.
_OF = re.compile(
    r"\s(?:of|for|to|per|in|by)\s(?:(?:just|the|an?|all|each|only|its|their) )*([a-z][\w/-]*(?: [a-z][\w/-]*){0,4})",
    re.I,
)
_NO_NAME = re.compile(r"^(?:GPU|card|memory|total|VRAM|case|range|most|line|step|about|around|fit)\b", re.I)


def find_mentions(text: str, rows: Sequence[Claim]) -> Iterator[Claim]:
    """Each size of `text` that a sentence names and no row of `rows` has; each a block of its own, after theirs."""
    block = max((row.block for row in rows), default=0)
    taken = {row.line for row in rows}
    for low, high, match in sizes(text):
        line = line_of(text, match.start())
        name = _OF.match(text, match.end())
        if line not in taken and name and not _NO_NAME.match(name[1]) and not match[1]:
            block += 1
            yield _claim(" ".join(name[1].split()), match[0], low, high, line, block)
    for num_bytes in cards(text):
        block += 1
        yield _claim("card", f"{num_bytes // 10**9} GB", num_bytes, num_bytes, 0, block)


def _claim(label: str, printed: str, low: float, high: float, line: int, block: int) -> Claim:
    plain = printed.strip(" ~-<>=")
    return Claim(
        label=label, printed=plain, low_bytes=round(low), high_bytes=round(high), line=line, block=block, heading=""
    )
