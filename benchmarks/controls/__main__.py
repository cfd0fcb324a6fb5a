"""`make controls`: runs every control, prints the page, and writes it to docs/controls.md.

`python -m benchmarks.controls [PREFIX...]` runs those whose names begin so, and writes nothing.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.controls.forks import RecordedForks
from benchmarks.controls.page import render
from benchmarks.controls.table import Control, controls
from benchmarks.controls.verdicts import Answer, Verifier

PAGE = Path(__file__).parents[2] / "docs" / "controls.md"


def main(prefixes: tuple[str, ...]) -> int:
    """Run them one after the other; the exit code is 1 where a verdict is wrong."""
    chosen = [control for control in controls() if control.name.startswith(prefixes or ("",))]
    answers = list(_answers(chosen))
    page = render(answers)
    print(page, end="")
    if not prefixes:
        PAGE.write_text(page, encoding="utf-8")
    return int(any(answer.mistakes for answer in answers))


def _answers(chosen: list[Control]) -> Iterator[Answer]:
    with tempfile.TemporaryDirectory() as directory, closing(RecordedForks()) as forks:
        forked, others = Verifier(Path(directory) / "forked", forks.start), Verifier(Path(directory) / "others")
        for control in chosen:
            answer = (others if control.needs else forked).verify(control)
            print(control.name, answer.verdict, *answer.mistakes, file=sys.stderr, flush=True)
            yield answer


if __name__ == "__main__":
    sys.exit(main(tuple(sys.argv[1:])))
