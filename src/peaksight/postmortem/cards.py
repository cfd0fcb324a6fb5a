"""The cards that a log names, as nvidia-smi, torch and people write them."""

import re
from collections.abc import Iterable

# A brand and a model, or a model with its form as drivers before 2021 print it; nvidia-smi pads with more blanks.
_NAME = re.compile(
    r"(?<![\w-])((?:(?:NVIDIA|GeForce|Tesla|Quadro|TITAN|RTX|GTX|PRO) ){1,4}"
    r"(?:[A-Z]{1,2}\d{1,4}[A-Z]?|\d{4}|V|RTX|Xp)"
    r"|[AHV]\d{3}-(?:SXM|PCIE)\d?)(?![\d.])(?=((?:[ -][\w.]{1,16}){0,6}))",
    re.IGNORECASE,
)
_MAX_NAMES = 16


def find_card_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Every name of a card in `texts` once, with what follows it on its line: up to six words."""
    found: dict[str, None] = {}
    for text in texts:
        for match in _NAME.finditer(text):
            found.setdefault(match[1] + match[2])
            if len(found) >= _MAX_NAMES:
                return tuple(found)
    return tuple(found)
