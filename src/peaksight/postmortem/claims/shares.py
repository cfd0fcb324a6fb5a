"""What two statements of a text say of one thing: a share of the model, a card that it fits, what is frozen."""

import re
from collections.abc import Iterator, Sequence

from peaksight.postmortem.claims.parts import GB, GRADIENTS, TOTAL, is_parameters, line_of
from peaksight.records import Check, Claim

_OF_MODEL = re.compile(
    r"~?(\d{1,3})(?:\s?[-\u2013]\s?(\d{1,3}))?\s?% of (?:the )?(?:model|weights?|parameters?)(?:'s)? ?size", re.I
)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
_FITS = re.compile(r"\bfits?\b[^.\n]{0,60}?(\d{1,3})(?:\s?[-\u2013]\s?(\d{1,3}))?\s?GB\b", re.I)
_COUNT = re.compile(r"~?(\d+(?:\.\d+)?)\s?(B|M|billion|million)\s(?:params|parameters)", re.I)
_CLAUSE = re.compile(r"\n|;| and ")
_SEVERAL = 1.5
_WIDEST = 4


def check_shares(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """Each pair of statements that can be compared."""
    yield from _of_the_model(text, rows)
    yield from _fits_the_card(text, rows)
    yield from _gradients_of_frozen(text, rows)


def _of_the_model(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """`20-30 % of model size` under a heading, against the row of that name beside the model's."""
    for match in _OF_MODEL.finditer(text):
        heads = [head[1].strip("# *?").lower() for head in _HEADING.finditer(text, 0, match.start())]
        row = next((row for row in rows if heads and row.high_bytes and row.label.lower().startswith(heads[-1])), None)
        model = max((r.high_bytes for r in rows if row and r.block == row.block and is_parameters(r)), default=0)
        if row and model:
            low, high = (float(match[group] or match[1]) / 100 * model for group in (1, 2))
            holds = low / _SEVERAL <= row.low_bytes and row.high_bytes <= high * _SEVERAL
            said = (
                f"{match[0].lstrip('~')} are {low / GB:.2g} to {high / GB:.2g} GB (line {line_of(text, match.start())})"
            )
            yield Check(
                name="share-of-model", text=f"{row.label}: {said}; line {row.line} says {row.printed}.", holds=holds
            )


def _fits_the_card(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """`Total: 30-45 GB` ... `fits 40-48 GB`: the highest of the one in the smallest of the other."""
    for match in _FITS.finditer(text):
        line = line_of(text, match.start())
        total = next((row for row in reversed(rows) if row.line <= line and TOTAL.search(row.label)), None)
        smallest = int(match[1]) * GB
        if total and line - total.line <= 12:
            said = f"line {line} says that {total.printed} fits {match[1]} GB"
            holds = total.high_bytes <= smallest
            verdict = "it does" if holds else f"{total.high_bytes / GB:.3g} GB do not"
            yield Check(name="fits-the-card", text=f"{said}: {verdict}.", holds=holds)


def _gradients_of_frozen(text: str, rows: Sequence[Claim]) -> Iterator[Check]:
    """More gradients than the parameters that are not frozen can have, in float32."""
    frozen, trained = set[float](), set[float]()
    for match in _COUNT.finditer(text):
        is_frozen = "frozen" in _CLAUSE.split(text[max(match.start() - 200, 0) : match.end()])[-1].lower()
        (frozen if is_frozen else trained).add(float(match[1]) * (1e9 if match[2][0] in "Bb" else 1e6))
    most = _WIDEST * sum(trained - frozen)
    row = next((row for row in rows if GRADIENTS.search(row.label)), None)
    if frozen and most and row and row.low_bytes > 1.1 * most:
        said = f"{row.printed} of gradients, but what is not frozen ({most / _WIDEST / 1e9:.3g} B parameters) has"
        why = "either more is trained than the text says, or there are fewer"
        yield Check(name="gradients-of-frozen", text=f"{said} at most {most / GB:.3g} GB: {why}.", holds=False)
