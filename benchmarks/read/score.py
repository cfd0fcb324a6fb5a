"""Whether the accepted cause of each public report is among the first two that `peaksight read` gives.

A report is read twice: as the error text alone, and with what its reporter says of the job (framework, configuration).
`accepted_causes.json` says which kinds count for it, and whether the text or the description decides it at all.
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path

from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log
from peaksight.records import Reading

REPORTS = Path(__file__).parents[2] / "tests" / "data" / "oom-reports" / "reports.jsonl"
ACCEPTED = Path(__file__).parent / "accepted_causes.json"


@dataclass(frozen=True)
class Answer:
    """One report as read: `first_two` kinds, those `accepted`, whether the text `decides`, and whether we say so."""

    name: str
    first_two: tuple[str, ...]
    accepted: tuple[str, ...]
    decides: bool
    says_so: bool

    @property
    def is_right(self) -> bool:
        """The accepted cause is among the first two."""
        return any(kind in self.accepted for kind in self.first_two)


def read_text(text: str) -> Reading:
    """The reading of `text`."""
    return explain(read_log(io.BytesIO(text.encode()), "report"))


def answers(*, described: bool) -> list[Answer]:
    """Every report that has a text, or with `described` every one."""
    accepted = json.loads(ACCEPTED.read_text(encoding="utf-8"))
    found = []
    for line in REPORTS.read_text(encoding="utf-8").splitlines():
        report = json.loads(line)
        parts = ([report["framework"], report["config"]] if described else []) + report["error_text"]
        if described or report["error_text"]:
            found.append(_answer(report["id"], "\n".join(parts), accepted[report["id"]], described))
    return found


def _answer(name: str, text: str, entry: dict, described: bool) -> Answer:
    reading = read_text(text)
    return Answer(
        name=name,
        first_two=tuple(cause.kind for cause in reading.causes[:2]),
        accepted=tuple(entry["accepted"]),
        decides=entry["described" if described else "text"],
        says_so=reading.decided,
    )


def summary(found: list[Answer]) -> str:
    """`17 of 18 right where the text decides it; 11 of 12 said to be undecided where it does not`."""
    decidable = [answer for answer in found if answer.decides]
    open_ones = [answer for answer in found if not answer.decides]
    right = sum(answer.is_right for answer in decidable)
    honest = sum(not answer.says_so for answer in open_ones)
    return (
        f"{right} of {len(decidable)} right among the first two where it decides the cause; "
        f"cannot tell said of {honest} of the {len(open_ones)} where it does not"
    )


def main() -> None:
    """Print both scores, and each miss."""
    for described, name in ((False, "error text alone"), (True, "with the reporter's description")):
        found = answers(described=described)
        print(f"{name}: {summary(found)}")
        for answer in found:
            if answer.decides and not answer.is_right:
                print(f"  {answer.name}: {', '.join(answer.first_two) or 'nothing'}; accepted {answer.accepted[0]}")
            if not answer.decides and answer.says_so:
                print(f"  {answer.name}: claims {answer.first_two[0]}, which the text does not decide")


if __name__ == "__main__":
    main()
