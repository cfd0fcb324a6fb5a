"""The command line: one file a sub-command; `main` is the only place that catches peaksight's errors."""

import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

import click

from peaksight import __version__
from peaksight.cli.commands import Commands
from peaksight.cli.lazily import LazyCommands
from peaksight.ending import end_process
from peaksight.errors import PeaksightError

NO_ANSWER = 2
COMMANDS = LazyCommands(
    "run", "fix", "compare", "verify", "read", "watch", "report", "explain", "replay", "gpus", "completion", "planned"
)


@click.group(cls=Commands, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="peaksight")
@click.option("--isolated", is_flag=True, help="Ignore [tool.peaksight] of a pyproject.toml.")
def peaksight(isolated: bool) -> None:
    """See the memory peak of a PyTorch training run before the GPU does."""


def command() -> NoReturn:
    """What `peaksight` is in a shell: this process's command line, and the end of the process."""
    end_process(main())


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line `args` (default: this process's) and return the exit code; never raises."""
    words = list(sys.argv[1:] if args is None else args)
    if words[:1] == ["--plan"]:
        words = ["planned", *words]
    try:
        return peaksight.main(words, prog_name="peaksight", standalone_mode=False) or 0
    except PeaksightError as error:
        _complain(f"{error} See docs/messages.md#{error.slug}.")
    except click.ClickException as error:
        error.show()
    except (click.Abort, KeyboardInterrupt):
        _complain("interrupted.")
    except Exception:
        # Python would exit with 1, which says that the job does not fit.
        traceback.print_exc()
        _complain("the mistake is in peaksight, not in your script: please report it.")
    return NO_ANSWER


def _complain(message: str) -> None:
    from peaksight.cli.complaints import complain

    complain(message)
