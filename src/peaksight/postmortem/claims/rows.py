"""Named sizes: `Model: 6GB`, `| Activations | 15 |` under a header with a unit, `- KV cache: ~3.86 GB`."""

import re
from collections.abc import Iterator

from peaksight.records import Claim

# Prose means 10^9 by GB as often as 2^30; 10^9 is taken, and checks allow for the difference.
UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "b": 1}
NUMBER = r"\d[\d,]{0,20}(?:\.\d{1,10})?"
RANGE = re.compile(
    rf"(-?)[~<>=\u2248]{{0,3}}\s?({NUMBER})(?:\s?[-\u2013]\s?({NUMBER}))?\s?(GB|MB|KB|TB|GiB|MiB|KiB)\b", re.I
)
_LIST_ROW = re.compile(
    r"^\s{0,12}(?:[-*\u2022]|\d{1,2}\.)?\s{0,4}(?:\*\*)?([A-Za-z][^:|\n]{0,70}?)(?:\*\*)?:(?:\*\*)?\s{1,40}(.{1,160})$"
)
_TRAILING = re.compile(
    rf"^\s{{0,12}}(?:[-*\u2022]|\d{{1,2}}\.)\s+(?:\*\*)?([A-Za-z][^()|\n]{{2,60}}?)(?:\*\*)?\s+\(~?({NUMBER})\s?(GB|MB|GiB|MiB)\)\s*$",
    re.I,
)
_HEADER_UNIT = re.compile(r"\((GB|MB|GiB|MiB|KB)\)|^\s*(GB|MB|GiB|MiB)\s*$", re.I)


def number(text: str) -> float:
    """The value of `1,167,360` or `3.86`."""
    return float(text.replace(",", ""))


def sizes(text: str) -> Iterator[tuple[float, float, re.Match[str]]]:
    """Every size in `text` with its lowest and highest value in bytes."""
    for match in RANGE.finditer(text):
        unit = UNITS[match[4].lower()]
        low = number(match[2]) * unit
        yield low, number(match[3]) * unit if match[3] else low, match


def find_rows(text: str) -> list[Claim]:
    """The named sizes of `text` in its order; `block` is the same for rows that stand together."""
    rows: list[Claim] = []
    block, header, heading = 0, None, ""
    for position, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#"):
            heading = line.strip("# *")
        if not line.strip() or line.startswith(("#", "```")):
            block, header = block + 1, None
            continue
        cells = _cells(line)
        if cells and header is None:
            header = _units(cells)
            if not _is_row(cells, header):
                continue
        rows += (
            _of_table(cells, header or [], position, block, heading)
            if cells
            else _of_list(line, position, block, heading)
        )
    return rows


def _cells(line: str) -> list[str]:
    stripped = line.strip()
    if not (stripped.startswith("|") and stripped.endswith("|") and stripped.count("|") >= 3):
        return []
    return [cell.strip(" *") for cell in stripped[1:-1].split("|")]


def _units(cells: list[str]) -> list[str]:
    """The unit that each column's header names; empty where it names none."""
    return [
        next((group for group in match.groups() if group), "") if (match := _HEADER_UNIT.search(cell)) else ""
        for cell in cells
    ]


def _is_row(cells: list[str], header: list[str]) -> bool:
    return not any(header) and any(RANGE.search(cell) for cell in cells)


def _of_table(cells: list[str], header: list[str], line: int, block: int, heading: str) -> list[Claim]:
    """The first size of a table's row: in a column with a unit, or with its own."""
    for position, cell in enumerate(cells[1:], start=1):
        unit = header[position] if position < len(header) else ""
        written = (
            cell
            if RANGE.search(cell)
            else f"{cell} {unit}"
            if unit and re.fullmatch(r"[~\d,.\s-]+(?:GB|MB)?", cell)
            else ""
        )
        if (found := list(sizes(written))) and not found[0][2][1]:
            low, high, match = found[0]
            return [_claim(cells[0], match[0], low, high, line, block, heading)]
    return []


def _of_list(line: str, position: int, block: int, heading: str) -> list[Claim]:
    if match := _TRAILING.match(line):
        size = number(match[2]) * UNITS[match[3].lower()]
        return [_claim(match[1], f"{match[2]} {match[3]}", size, size, position, block, heading)]
    match = _LIST_ROW.match(line)
    found = list(sizes(_right_side(match[2]))) if match else []
    if match is None or not found or found[0][2].start() > 12 or found[0][2][1]:
        return []
    low, high, written = found[0]
    rest = written.string[written.end() : written.end() + 40]
    label = f"{match[1]} {rest}" if "(" in rest[:3] else match[1]
    return [_claim(label, written[0], low, high, position, block, heading)]


def _right_side(text: str) -> str:
    """Behind the last equals sign, where a size stands there."""
    result = text.rpartition("=")[2].strip()
    return result if RANGE.search(result) else text


def _claim(label: str, printed: str, low: float, high: float, line: int, block: int, heading: str) -> Claim:
    return Claim(
        label=" ".join(label.replace("**", "").split())[:90],
        printed=printed.strip(),
        low_bytes=round(low),
        high_bytes=round(high),
        line=line,
        block=block,
        heading=heading[:80],
    )
