"""The tokens of an allocator's settings, and the numbers among them, as torch reads them."""

import math
import re
import sys
from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\n\v\f\r]+")
_TOKEN = re.compile(r"[,:\[\]]|[^,:\[\]]+")
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:0x[\da-f]*\.?[\da-f]+(?:p[+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)",
    re.ASCII | re.IGNORECASE,
)
_SIZE_T = 1 << 64


class BadConfigError(ValueError):
    """What torch refuses in a text of settings; the message fits behind a colon."""


class ConfigTokens:
    """As `ConfigTokenizer` in c10/core/AllocatorConfig.h: keys, values and `:`, `,`, `[`, `]`, read one by one.

    torch skips the token where a `:` or `,` belongs without a look at it, so `skip` does too.
    """

    def __init__(self, text: str) -> None:
        """Start before the first token of `text`; white space does not count."""
        self._tokens: list[str] = _TOKEN.findall(_SPACE.sub("", text))
        self._position = 0

    def __bool__(self) -> bool:
        """Whether there is another token."""
        return self._position < len(self._tokens)

    def peek(self) -> str:
        """The next token, which stays.

        Raises:
            BadConfigError: there is none.
        """
        if not self:
            raise BadConfigError("it ends where a value belongs")
        return self._tokens[self._position]

    def take(self) -> str:
        """The next token.

        Raises:
            BadConfigError: there is none.
        """
        token = self.peek()
        self._position += 1
        return token

    def skip(self) -> None:
        """Pass over a separator.

        Raises:
            BadConfigError: there is no further token.
        """
        self.take()

    def take_keys(self) -> Iterator[str]:
        """The keys; what reads the value of each takes its tokens."""
        while self:
            yield self.take()
            if self:
                self.skip()


def to_size_t(token: str) -> int:
    """The leading digits of `token` as std::stoull reads them: what follows is ignored, and -1 is the largest number.

    Raises:
        BadConfigError: it starts with no number, or with one beyond 64 bits.
    """
    match = _INTEGER.match(token)
    if match is None:
        raise BadConfigError(f"'{token}' is not a number")
    number = int(match[0])
    if abs(number) >= _SIZE_T:
        raise BadConfigError(f"'{token}' is too large a number")
    return number % _SIZE_T


def to_double(token: str) -> float:
    """The number at the start of `token` as std::stod reads it: what follows is ignored.

    Raises:
        BadConfigError: it starts with no number, or with one that a double can't hold.
    """
    match = _FLOAT.match(token)
    if match is None:
        raise BadConfigError(f"'{token}' is not a number")
    text = match[0]
    number = float.fromhex(text) if "x" in text.lower() else float(text)
    if 0 < abs(number) < sys.float_info.min or (number == 0 and re.search(r"[1-9]", text.lower().split("e")[0])):
        raise BadConfigError(f"'{token}' is too small a number")
    if math.isinf(number) and "inf" not in text.lower():
        raise BadConfigError(f"'{token}' is too large a number")
    return number


def to_bool(token: str) -> bool:
    """`True` or `False`.

    Raises:
        BadConfigError: it is another word.
    """
    if token not in ("True", "False"):
        raise BadConfigError(f"'{token}' is neither True nor False")
    return token == "True"
