"""Whose line is it: the prefixes that launchers put in front of every line."""

import re
from collections import Counter
from dataclasses import dataclass, field

# torch's own, torchrun's, mpirun's, what people's loggers print; srun's bare number only if most lines have it.
_PREFIX = re.compile(
    r"\s{0,4}(?:\[rank(\d{1,6})\]:?|\[default(\d{1,6})\]:|\[\d{1,6},(\d{1,6})\]<std(?:err|out)>:?"
    r"|\[[Rr]ank[ :=]?(\d{1,6})\]:?"
    r"|[Rr]ank[ :=](\d{1,6})[:\]] |\(\w{1,40} rank=(\d{1,6})\)|\[(\d{1,6})\]:) ?"
)
# Ray's workers are told apart by their process, which is no rank.
_PROCESS = re.compile(r"^\(\w{1,40} pid=(\d{1,12})(?:, ip=[\d.]{1,20})?\) ?")
_BARE = re.compile(r"^(\d{1,4}): ?")


@dataclass(slots=True)
class RankText:
    """The lines of one rank, without its prefix; `lines[i]` is the number in the log of the i-th line of `text`."""

    rank: int | None
    parts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.parts)


def split_ranks(text: str, first_line: int) -> list[RankText]:
    """The texts of all ranks in `text`; lines without a prefix are those of rank None."""
    lines = text.split("\n")
    bare = _counts_ranks(lines)
    ranks: dict[tuple[int | None, str], RankText] = {}
    for number, line in enumerate(lines, start=first_line):
        process = _PROCESS.match(line)
        rank, rest = (None, line[process.end() :]) if process else _split(line, bare)
        own = ranks.setdefault((rank, process[1] if process else ""), RankText(rank))
        own.parts.append(rest)
        own.lines.append(number)
    return list(ranks.values())


def _split(line: str, bare: bool) -> tuple[int | None, str]:
    task = _BARE.match(line) if bare else None
    match = _PREFIX.match(line, task.end() if task else 0) or task
    if match is None:
        return None, line
    return next(int(group) for group in match.groups() if group is not None), line[match.end() :]


def _counts_ranks(lines: list[str]) -> bool:
    """Whether `3: ` in front of lines is srun's rank, and not a numbered list: most lines have it, of several ranks."""
    found = Counter(match[1] for line in lines if (match := _BARE.match(line)))
    total = found.total()
    return len(found) > 1 and total > 0.5 * len([line for line in lines if line]) and max(found.values()) > 1
