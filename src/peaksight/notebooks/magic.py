"""`%%peaksight` for IPython and Jupyter."""

import shlex
import sys
from typing import Any

from peaksight.errors import PeaksightError, UsageError
from peaksight.notebooks.cells import NEEDED, choose
from peaksight.notebooks.history import executed_cells, notes_on
from peaksight.notebooks.prediction import Page
from peaksight.notebooks.simulation import simulate_code

_OURS = ("--json", "--html", "--save", "--format", "-q", "--quiet", "--force", "-m")


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext peaksight`: give `shell` the cell magic."""

    def peaksight(line: str, cell: str) -> Page | None:
        """Simulate this cell on a virtual GPU: `%%peaksight [--cells needed|all|none|1,3] [options of peaksight run]`.

        The cell runs as a script in a process of its own, after the earlier cells that define what it uses.
        """
        try:
            which, words = _options(shlex.split(line))
            code = shell.transform_cell(cell)
            chosen = choose(executed_cells(shell), code, which)
            return simulate_code(code, chosen.before, words, notes_on(chosen)).show()
        except PeaksightError as error:
            print(f"peaksight: {error} See docs/messages.md#{error.slug}.", file=sys.stderr)
            return None

    shell.register_magic_function(peaksight, "cell", "peaksight")


def _options(words: list[str]) -> tuple[str, list[str]]:
    """What `--cells` says, and the other words, which are options of `peaksight run`."""
    which = NEEDED
    if "--cells" in words:
        at = words.index("--cells")
        which = "".join(words[at + 1 : at + 2])
        words = words[:at] + words[at + 2 :]
    refused = next((word for word in words if word.partition("=")[0] in _OURS), None)
    if refused is not None:
        raise UsageError(
            f"{refused} has no meaning above a cell, which shows the page itself: leave it out, and take "
            "`_.report` or `_.page` of what the cell returns.",
            slug="magic-option",
        )
    return which, words
