"""When a failure happened, as its log prints it: of several ranks the earliest is the one to look at."""

import re

# ISO's order, transformers' month first, and glog's letter with month and day, which is torch's own.
_CLOCK = r"(\d{2}:\d{2}:\d{2})(?:[.,](\d{1,9}))?(?![\d:])"
_TIME = re.compile(
    r"(?<!\d)(?:\d{4}[-/](\d{2})[-/](\d{2})[T _,]|(\d{2})/(\d{2})/\d{4} |[IWEF](\d{2})(\d{2}) {1,4})" + _CLOCK
)
_TRACEBACK = re.compile(r"^.{0,120}Traceback \(most recent call last\)", re.M)
_REACH = 2000


def time_in(line: str) -> str:
    """The first time that `line` prints, as `11-28 12:10:00.123456`, empty where it prints none.

    The year is left out, which glog does not print. Times of one job in this form are ordered as texts.
    """
    match = _TIME.search(line[:_REACH])
    if match is None:
        return ""
    *days, clock, fraction = match.groups()
    month, day = [part for part in days if part]
    return f"{month}-{day} {clock}.{(fraction or '0').ljust(6, '0')[:6]}"


def time_of(before: str, body: str) -> str:
    """The time at which a message was printed: on its line, on its traceback's first line, or on the one before that.

    An earlier line is no evidence: nobody knows how long ago it was.
    """
    start = before.rfind("\n") + 1
    own = time_in(before[start:] + body.split("\n", 1)[0])
    tracebacks = list(_TRACEBACK.finditer(before))
    if own or not tracebacks:
        return own
    first = tracebacks[-1].start()
    above = before[before.rfind("\n", 0, max(first - 1, 0)) + 1 : first]
    return time_in(tracebacks[-1][0]) or time_in(above)
