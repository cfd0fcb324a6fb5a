"""The words of a rank that missed another one: it failed because something else had failed before."""

import re
from collections.abc import Iterable

from peaksight.postmortem.times import time_in
from peaksight.records import Abort

_WORDS = re.compile(
    r"Watchdog caught collective operation timeout|NCCL communicator was aborted|ncclRemoteError|NCCL Error 6\b"
    r"|remote process exited or there was a network error|Connection (?:reset|closed) by (?:remote )?peer"
    r"|Timed out waiting \d{1,9}ms for (?:recv|send)|Sending process \d{1,9} closing signal SIG(?:TERM|KILL|INT)"
)
_RANK = re.compile(r"\[[Rr]ank ?(\d{1,6})\]")
_QUOTE = 160


def find_abort(texts: Iterable[str]) -> Abort | None:
    """The first such line of `texts`, None where there is none."""
    for text in texts:
        if match := _WORDS.search(text):
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.end() + _QUOTE].split("\n", 1)[0]
            rank = _RANK.search(line)
            quote = " ".join(text[match.start() :].split("\n", 1)[0][:_QUOTE].split())
            return Abort(quote=quote, time=time_in(line), rank=int(rank[1]) if rank else None)
    return None
