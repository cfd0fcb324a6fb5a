"""The colours of what memory is for, on pages: those of Okabe and Ito, which the colour-blind tell apart.

Each has a light and a dark form; the scripts ask the page for them, so that they stand here only.
"""

from peaksight.records import Category

COLORS: dict[str, tuple[str, str]] = {
    Category.PARAMETER: ("#0072b2", "#3186cc"),
    Category.OPTIMIZER_STATE: ("#009e73", "#2cc296"),
    Category.GRADIENT: ("#d55e00", "#f0793a"),
    Category.BUFFER: ("#cc79a7", "#df98c0"),
    Category.ACTIVATION: ("#e69f00", "#f2b53c"),
    Category.TEMPORARY: ("#56b4e9", "#86cdf5"),
    Category.INPUT: ("#b5a300", "#f0e442"),
    Category.WORKSPACE: ("#7353ba", "#a58be0"),
    Category.COMMUNICATION: ("#882255", "#c65b8f"),
    Category.OTHER: ("#8b8f96", "#90959e"),
    "unallocated": ("#c3c9d2", "#4a515c"),
    "context": ("#5f6773", "#7d8693"),
    "libraries": ("#9198a3", "#656d79"),
    "other_processes": ("#3e444d", "#a9b1bc"),
    "withheld": ("#d9b8a8", "#6b4f42"),
    "free": ("#eef1f4", "#22262c"),
}

_WORDS = {
    "unallocated": "reserved, unused",
    "context": "CUDA context",
    "other_processes": "other processes",
}


def words_of(part: str) -> str:
    """A category or a part of the card as a person reads it."""
    return _WORDS.get(part, part.replace("_", " "))


def palette_css() -> str:
    """The colours as custom properties: `--activation`."""
    lines = (f"  --{name.replace('_', '-')}: light-dark({light}, {dark});" for name, (light, dark) in COLORS.items())
    return "\n".join((":root {", *lines, "}"))
