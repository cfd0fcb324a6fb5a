"""Candidates of `fix`, simulated in parallel."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from peaksight.errors import UsageError
from peaksight.records import ScriptCommand
from peaksight.records.proposals import Candidate, Outcome
from peaksight.virtual_gpu.ranks.world import with_ranks

# What argparse, click, transformers' and Hydra's parsers say of a flag that they do not know, or not with that value.
_UNKNOWN_FLAG = re.compile(
    r"unrecognized arguments|expected \w+ argument|invalid (\w+ value|choice)|no such option|are not used by the"
    r" HfArgumentParser|Could not override",
    re.IGNORECASE,
)


def failed(why: str) -> Outcome:
    """Of a simulation that said `why` and ended."""
    return Outcome(error=f"the script fails with it: {why}")


def simulated(
    candidates: Sequence[Candidate],
    *,
    pool: Any,
    each_as: Callable[[Candidate], Any],
    tell: Callable[[str], None],
) -> Iterator[Outcome]:
    """What `candidates` come to in `pool`, simulated as `each_as` says; `tell` gets the title of each that is done.

    Raises:
        UsageError: the script does not take the arguments of one.
    """
    outcomes: Iterable[Outcome] = pool.run([each_as(each) for each in candidates])
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        tell(candidate.title)
        _check_flags(candidate, outcome)
        yield outcome


def simulation_of(candidate: Candidate, *, command: ScriptCommand, how: dict[str, Any]) -> Any:
    """The `Simulation` of `command` with what `candidate` changes, and else as `how` says."""
    from peaksight.virtual_gpu.pool import Simulation

    return Simulation(command=_command_of(candidate, command), options={**how, "changes": candidate.changes})


def _command_of(candidate: Candidate, command: ScriptCommand) -> ScriptCommand:
    changed = command if candidate.arguments is None else replace(command, args=candidate.arguments)
    return changed if candidate.ranks == 1 else with_ranks(changed, candidate.ranks)


def _check_flags(candidate: Candidate, outcome: Outcome) -> None:
    if candidate.arguments is not None and _UNKNOWN_FLAG.search(outcome.error):
        raise UsageError(
            f"The script does not take {candidate.title}: {outcome.error.rpartition('error: ')[2]}. Give flags that "
            "it takes, with values that it takes.",
            slug="vary-flag",
        )
