"""Equations written out: `(8, 19, 15360) = 23,500,800 floats = 94 MB`, `5e-4 / 512 * 16 = 1.5625e-4`."""

import ast
import operator
import re
from collections.abc import Iterator
from itertools import pairwise
from math import prod

from peaksight.postmortem.claims.rows import UNITS
from peaksight.records import Check

_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_WORDS = (
    r"(?:\s?(?:GB|MB|KB|GiB|MiB|bytes?|floats?|layers?|batches|batch|timesteps?|state|samples?|heads?|times"
    r"|allocated|reserved|steps|GPUs?|tokens?|params?|blocks?)\b){0,2}"
)
# One side of an equation: numbers with a unit or a word, operators, parentheses, commas of a shape.
_TERM = rf"[(\[]?\s?{_NUMBER}{_WORDS}\s?[)\]]?"
_SIDE = rf"{_TERM}(?:\s?[-+*/,]\s?{_TERM}){{0,12}}"
# It begins where a calculation does, and ends in no percentage.
_CHAIN = re.compile(
    rf"(?<![\w.^*/+\-])(?<![*/+\-]\s)({_SIDE})(?:\s*=\s*~?({_SIDE}))(?:\s*=\s*~?({_SIDE}))?(?:\s*=\s*~?({_SIDE}))?",
    re.I,
)
# A product or a shape, which a sentence says to be a size: `8 x 12 x 785 x 785 in fp32, is 94 MB`.
_PRODUCT = rf"((?<![\w.])(?:{_NUMBER}\s?\*\s?)+{_NUMBER}|[(\[]\s?\d[\d, ]*\d\s?[)\]])"
_IS = (
    r"(?:=|is|are|takes?|needs?|uses?|makes?|gives?|comes? to|equals?)(?: about| around| roughly)?"
    rf"\s+~?(?={_NUMBER}\s?[KMGT]i?B\b)"
)
_WIDTHS = {"fp32": 4, "float32": 4, "fp16": 2, "float16": 2, "bf16": 2, "bfloat16": 2, "fp64": 8, "int64": 8, "int8": 1}
_IN_TYPE = re.compile(rf"{_PRODUCT}\s?(?:elements |values |floats )?in ({'|'.join(_WIDTHS)}),?\s+{_IS}", re.I)
_VERB = re.compile(rf"{_PRODUCT} {_IS}", re.I)
_POWER = re.compile(r"(?<![\w.])(2|10)(?:\*\*|\^)(\d{1,2})(?![\d.])")
_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
_MAX_TEXT = 200_000
_TOLERANCE = 0.03


def check_equalities(text: str) -> Iterator[Check]:
    """Each equation whose both sides can be worked out; wrong ones with the right value and by how much."""
    plain = _plain(text[:_MAX_TEXT])
    for match in _CHAIN.finditer(plain):
        sides = [side for side in match.groups() if side]
        if plain[match.end() : match.end() + 2].strip().startswith("%"):
            sides = sides[:-1]
        for left, right in pairwise(sides):
            if (check := _check(left.strip(), right.strip())) is not None:
                yield check


def _plain(text: str) -> str:
    """Signs as on a keyboard, and an equation that goes on in the next line in one."""
    text = re.sub(r"[\u00d7\u2715]", "*", text).replace("\u2212", "-")
    text = _POWER.sub(lambda match: str(int(match[1]) ** int(match[2])), text).replace("**", "")
    text = re.sub(r"(?<=\d)\s?[x]\s?(?=\d)", "*", text)
    text = _IN_TYPE.sub(lambda match: f"{match[1]} * {_WIDTHS[match[2].lower()]} bytes = ", text)
    text = _VERB.sub(r"\1 = ", text)
    return re.sub(r"\n\s{0,20}=\s", " = ", text)


def _check(left: str, right: str) -> Check | None:
    """None where a side is no arithmetic, or both are single numbers."""
    if not re.search(r"[-+*/,]", left.lstrip("-")) and not re.search(r"floats|params", left):
        return None
    one, other = _value(left), _value(right)
    if one is None or other is None or one[0] == 0 or other[0] == 0:
        return None
    return _compare(left, right, one, other)


def _compare(left: str, right: str, one: tuple[float, str], other: tuple[float, str]) -> Check | None:
    (value, kind), (claimed, claimed_kind) = one, other
    shown = f"{left} = {right}"
    if kind == claimed_kind:
        return _verdict(shown, value, claimed, "" if kind == "number" else "size")
    if claimed_kind == "size" and kind == "number":
        if _is_counted_in(right, value) or _is_in_bytes(left, value, claimed):
            return Check(name="equation", text=f"{shown}: right.", holds=True)
        return _elements(shown, value, claimed)
    return None


def _is_counted_in(right: str, value: float) -> bool:
    """`5.7 + 38.3 = 44 GB`: the unit is that of all."""
    figure = re.match(_NUMBER, right)
    return figure is not None and _near(value, float(figure[0].replace(",", "")))


def _is_in_bytes(left: str, value: float, claimed: float) -> bool:
    """`131072 * 4096 * 2 = 1 GiB`: the last factor is the bytes of an element."""
    return bool(re.search(r"\*\s?[1248]$", left)) and any(_near(value, claimed * unit) for unit in (1, 1.0486, 1.0737))


def _verdict(shown: str, value: float, claimed: float, kind: str) -> Check:
    if _near(value, claimed) or (kind == "size" and _near(value * 2**10 / 10**3, claimed, 0.05)):
        return Check(name="equation", text=f"{shown}: right.", holds=True)
    factor = max(value / claimed, claimed / value)
    text = f"{shown}: wrong, the left side is {_shown(value, kind)}{_times(factor)}."
    return Check(name="equation", text=text, holds=False)


def _elements(shown: str, count: float, claimed: float) -> Check:
    """A number of elements that is said to be a size: 4 bytes each in fp32, 2 in half precision."""
    for width, name in ((4, "fp32"), (2, "half precision"), (8, "fp64 or int64"), (1, "")):
        if _near(count * width, claimed, 0.06) or _near(count * width, claimed * 1.048576, 0.03):
            if width == 1:
                text = f"{shown}: elements taken for bytes; {_shown(count * 4, 'size')} in fp32, 4 times as much."
                return Check(name="elements-as-bytes", text=text, holds=False)
            return Check(name="equation", text=f"{shown}: right in {name}.", holds=True)
    factor = max(count * 4 / claimed, claimed / (count * 4))
    text = f"{shown}: wrong, it is {_shown(count * 4, 'size')} in fp32{_times(factor)}."
    return Check(name="equation", text=text, holds=False)


def _times(factor: float) -> str:
    return f", off by {factor:.3g} times" if factor >= 1.5 else f", off by {100 * (factor - 1):.0f} %"


def _near(value: float, claimed: float, tolerance: float = _TOLERANCE) -> bool:
    return abs(value - claimed) <= tolerance * max(abs(value), abs(claimed))


def _shown(value: float, kind: str) -> str:
    if kind != "size":
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.0f} B"


def _value(side: str) -> tuple[float, str] | None:
    """The value of a side, and whether it is a size in bytes or a number; None where it is no arithmetic."""
    kind = "size" if re.search(r"\d\s?(?:GB|MB|KB|GiB|MiB|bytes?)\b", side, re.I) else "number"
    text = re.sub(rf"({_NUMBER})\s?(GB|MB|KB|GiB|MiB)\b", _in_bytes, side, flags=re.I)
    text = re.sub(r"[A-Za-z]{2,}", " ", text).replace("[", "(").replace("]", ")")
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    try:
        value = _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, OverflowError, RecursionError, MemoryError):
        return None
    return (value, kind) if value is not None and value == value and abs(value) < 1e30 else None


def _in_bytes(match: re.Match[str]) -> str:
    return repr(float(match[1].replace(",", "")) * UNITS[match[2].lower()])


def _evaluate(node: ast.expr) -> float:
    """Numbers, the four operators, and a shape, whose value is its number of elements."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Tuple) and len(node.elts) >= 2:
        return prod(_evaluate(element) for element in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return float(_OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right)))
    raise ValueError(ast.dump(node))
