"""What kind of text it is, and text that was read in the wrong encoding."""

import re

# Encodings in which UTF-8 is often shown by mistake.
_MISTAKEN = ("cp1252", "cp1254", "mac_roman")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]{2,40}")
_MARKUP = re.compile(r"^(?:#{1,4} \S|\s{0,6}[-*] \S|\|.{1,200}\|\s*$|\*\*)", re.M)
_FIGURE = re.compile(r"\d\s?(?:GB|MB|GiB|MiB|%)")
_FEW_FIGURES = 4
_FEW_MARKS = 4


def repaired(text: str) -> str:
    """`text` with what was decoded in the wrong encoding put right: an arrow shown as three letters is an arrow."""
    return _NOT_ASCII.sub(lambda match: _decoded_again(match[0]), text)


def _decoded_again(run: str) -> str:
    for encoding in _MISTAKEN:
        try:
            return run.encode(encoding).decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError):
            continue
    return run


def is_prose(text: str) -> bool:
    """Whether a person wrote it about memory: headings, lists or tables, and several figures in it."""
    if sum(1 for _ in _MARKUP.finditer(text)) < _FEW_MARKS:
        return False
    return sum(1 for _ in _FIGURE.finditer(text)) >= _FEW_FIGURES and "memory" in text.lower()
