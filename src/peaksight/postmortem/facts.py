"""What a log says of the job: sizes, shapes, words that point to a mechanism, the command."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from peaksight.records import Clue, Fact

_NAMES = {
    "batch": r"(?:per[_-]device[_-]train[_-]batch[_-]size|(?:micro|train"
    r"|mini)[_ -]?batch[_ -]?size(?:[_-]per[_-]gpu)?|batch[_ -]?size|batch|bs|bsz)",
    "sequence": r"(?:max[_-](?:seq(?:uence)?|input|source|target|model|position)?[_-]?length"
    r"|(?:max[_ -])?seq(?:uence)?[_ -]?(?:len(?:gth)?)?|block[_-]size|cutoff[_-]len|context[_ -]length|n[_-]ctx"
    r"|max[_-]tokens?|S)",
    "vocab": r"(?:padded[_-])?vocab(?:ulary)?(?:[_ -]?size)?",
    "hidden": r"(?:hidden[_ -]?(?:size|dim)|d[_-]model|n[_-]embd|embed[_-]dim)",
    "layers": r"(?:num[_-](?:hidden[_-])?layers|n[_-]layers?)",
    "heads": r"(?:num[_-](?:attention[_-])?heads|n[_-]heads?|attention heads)",
    "accumulation": r"(?:gradient[_ -]accumulation(?:[_ -]steps)?|accumulate[_-]grad[_-]batches)",
}
_PATTERNS = {
    name: re.compile(rf"(?<![\w.]){words}[\"']?(?:\s{{0,2}}[:=]\s{{0,2}}|\s|-|$)?[\"']?(\d{{1,3}}(?:,\d{{3}})+"
    rf"|\d{{1,7}})(?![\d/.%]|[kK]?\s?(?:GB|GiB|MB|MiB|bit))", re.IGNORECASE)
    for name, words in _NAMES.items()
}  # fmt: skip
_BEFORE = {
    "heads": re.compile(r"(?<![\w.])(\d{1,3}) (?:attention )?heads\b", re.IGNORECASE),
    "layers": re.compile(r"(?<![\w.])(\d{1,3}) (?:hidden )?layers\b", re.IGNORECASE),
    "vocab": re.compile(r"(?<![\w.])(\d{2,3}(?:,\d{3})|\d{5,6}) (?:tokens? )?vocab", re.IGNORECASE),
}
_IMAGE = re.compile(r"(?<![\w.,])(\d{2,4})\s?[x\u00d7]\s?(\d{2,4})(?![\w.,]|\s?[x\u00d7])")
_SAMPLE = re.compile(r"sample_size[\"']?\s?[=:]\s?(\d{2,4})\b")
_SHAPE = re.compile(r"[\[(]\s?(\d{1,9}(?:\s?,\s?\d{1,9}){1,7})\s?,?\s?[\])]")
# What a person typed: behind a prompt or variables, with options that may have a value, a script or a module to train.
_COMMAND = re.compile(
    r"^[^|\n]{0,40}?(?:\b\w{1,40}=\S{0,200}[ \t]+){0,12}((?:python3?|torchrun|accelerate launch|deepspeed)\s+"
    r"(?:-\S+\s+(?:[^-\s]\S*\s+)??){0,12}(?:\S{1,200}\.py\b|(?<=-m )[\w.]*(?:train|tune)[\w.]*).{0,600})$", re.M
)  # fmt: skip
_CONTINUED = re.compile(r"\\\r?\n\s*")
_REST_OF_SHELL = re.compile(r"(?:\s(?:[12&]?>|\||&|<)|;(?:\s|$)).*")
# A longer name is another model: gpt2-medium is no gpt2.
_NAME_ENDS = r"(?!\w|\.\d|-(?:medium|large|xl))"
_MAX_PER_NAME = 6
_MAX_SHAPES = 64
_QUOTE = 160


def find_facts(text: str, first_line: int) -> Iterator[Fact]:
    """Every size of the job that `text` names, and those of models that it names."""
    for name, pattern in (*_PATTERNS.items(), *_BEFORE.items()):
        for match in _first_few(pattern, text):
            yield _fact(name, int(match[1].replace(",", "")), text, match, first_line)
    for match in _first_few(_IMAGE, text):
        for name, group in (("image_height", 2), ("image_width", 1)):
            yield _fact(name, int(match[group]), text, match, first_line)
    for match in _first_few(_SAMPLE, text):
        yield _fact("latent", int(match[1]), text, match, first_line)
    yield from _models(text, first_line)


def _first_few(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    return [match for match, _ in zip(pattern.finditer(text), range(_MAX_PER_NAME), strict=False)]


def _fact(name: str, value: int, text: str, match: re.Match[str], first_line: int) -> Fact:
    return Fact(name=name, value=value, quote=match[0].strip()[:_QUOTE], line=line_at(text, match.start(), first_line))


def line_at(text: str, position: int, first_line: int) -> int:
    """The number of the line at `position`."""
    return first_line + text.count("\n", 0, position)


def _models(text: str, first_line: int) -> Iterator[Fact]:
    """The dimensions of the first models that are named."""
    lowered = text.lower()
    for pattern, sizes in _known_models():
        if match := pattern.search(lowered):
            for name, value in sizes.items():
                yield _fact(f"model_{name}", value, lowered, match, first_line)


@cache
def _known_models() -> list[tuple[re.Pattern[str], dict[str, int]]]:
    table = _table("models.toml")
    return [
        (
            re.compile(
                rf"(?<![\w-])(?:[\w.-]{{1,40}}/)?(?:meta-)?(?:{'|'.join(map(re.escape, model['names']))}){_NAME_ENDS}"
            ),
            {name: value for name, value in model.items() if name != "names"},
        )
        for model in table.values()
    ]


def find_shapes(text: str) -> list[tuple[int, ...]]:
    """Shapes written out, as `[8, 512, 960]`, each once; single numbers and empty ones are none."""
    found: dict[tuple[int, ...], None] = {}
    for match in _SHAPE.finditer(text):
        shape = tuple(int(size) for size in match[1].split(","))
        if all(shape) and max(shape) > 1:
            found.setdefault(shape)
        if len(found) >= _MAX_SHAPES:
            break
    return list(found)


def find_clues(text: str, first_line: int) -> Iterator[Clue]:
    """One clue for each mechanism that `text` points to, with the line that does."""
    for slug, pattern in _clue_patterns():
        if match := pattern.search(text):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            quote = " ".join(
                text[max(start, match.start() - 60) : end if 0 <= end < match.end() + 60 else match.end() + 60].split()
            )
            yield Clue(slug=slug, quote=quote[:_QUOTE], line=line_at(text, match.start(), first_line))


@cache
def _clue_patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [
        (slug, re.compile("|".join(f"(?:{words})" for words in clue["words"]), re.IGNORECASE | re.MULTILINE))
        for slug, clue in _table("clues.toml").items()
    ]


def _table(name: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("peaksight.postmortem") / name).read_text(encoding="utf-8"))


def find_command(texts: Iterable[str]) -> str:
    """The first command line that the log shows, without what a shell does to it; empty where it shows none."""
    matches = (match for text in texts if (match := _COMMAND.search(_CONTINUED.sub(" ", text))))
    return next((" ".join(_REST_OF_SHELL.sub("", match[1]).split())[:400] for match in matches), "")
