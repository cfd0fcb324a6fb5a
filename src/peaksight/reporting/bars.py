"""Bars of characters, in ASCII where the terminal can show nothing else."""

from dataclasses import dataclass

from rich.text import Text


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a bar: `full` for what is used, `light` for what is only reserved, `limit` for the card."""

    full: str
    light: str
    limit: str
    dot: str


UNICODE = Glyphs(full="\u2588", light="\u2591", limit="\u2502", dot="\u00b7")
ASCII = Glyphs(full="#", light=":", limit="|", dot="-")


def glyphs_for(encoding: str) -> Glyphs:
    """The glyphs that `encoding` can write."""
    try:
        "".join((UNICODE.full, UNICODE.light, UNICODE.limit, UNICODE.dot)).encode(encoding)
    except UnicodeEncodeError:
        return ASCII
    return UNICODE


def bar_width(width: int) -> int:
    """How long the bars of a table are that is `width` columns wide."""
    return max(4, min(24, width - 55))


def share_bar(part: int, whole: int, width: int, glyphs: Glyphs) -> str:
    """`part` of `whole` in `width` characters; anything above zero shows."""
    length = round(width * part / whole) if whole else 0
    return glyphs.full * max(length, 1 if part else 0)


def memory_bar(allocated: int, reserved: int, limit: int, scale: int, width: int, glyphs: Glyphs) -> Text:
    """One step: allocated and reserved bytes out of `scale`, with a mark at `limit`; what lies beyond it is red."""
    num_full, num_reserved, limit_at = (round(width * size / scale) for size in (allocated, reserved, limit))
    cells = (glyphs.full * num_full + glyphs.light * (num_reserved - num_full)).ljust(width)
    return Text.assemble((cells[:limit_at], "cyan"), (glyphs.limit, "bold"), (cells[limit_at:], "red"))
