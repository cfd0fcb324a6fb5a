"""The peaks of a script at each commit of a range."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peaksight.attribution import JudgedRun, commit_peak, commit_without_answer
from peaksight.cli.commits import Checkout, Commit, Repository
from peaksight.cli.compared import Simulation
from peaksight.cli.elsewhere import RunOutcome, simulate
from peaksight.cli.output import Output
from peaksight.errors import ScriptError, UsageError
from peaksight.records import CommitHistory, CommitPeak, LineDifference
from peaksight.units import format_bytes

SCHEMA = "peaksight.commits/1"


def commit_history(range_: str, simulation: Simulation, output: Output) -> CommitHistory:
    """Simulate at each commit of `range_`, and say on `output` how it goes.

    Raises:
        UsageError: there are no such commits.
        ScriptError: no commit has an answer.
    """
    repository = Repository()
    commits = repository.commits(range_)
    with repository.checkout() as checkout:
        peaks = tuple(_peaks(checkout, commits, simulation, output))
    if all(peak.allocated_bytes is None for peak in peaks):
        raise ScriptError(
            f"No commit of {range_} gives an answer (the last one: {peaks[-1].failure}). Try `peaksight run` on the "
            "command alone; files that are not in the repository are found by absolute paths only.",
            slug="no-peak",
        )
    return CommitHistory(schema=SCHEMA, argv=simulation.words, range=range_, commits=peaks)


def _peaks(
    checkout: Checkout, commits: Sequence[Commit], simulation: Simulation, output: Output
) -> Iterator[CommitPeak]:
    since: str | None = None
    before: JudgedRun | None = None
    for number, commit in enumerate(commits, start=1):
        outcome = _at(commit, checkout, simulation)
        done = f"{number} of {len(commits)}"
        output.progress(f"{done}: {commit.id[:8]}: {_result(outcome)}: {commit.subject}", number)
        if outcome.run is None:
            yield commit_without_answer(commit.id, commit.subject, outcome.failure)
            continue
        peak = commit_peak(commit.id, commit.subject, outcome.run, since, before)
        yield replace(peak, largest=_shown(peak.largest, checkout))
        since, before = commit.id, outcome.run


def _at(commit: Commit, checkout: Checkout, simulation: Simulation) -> RunOutcome:
    """What becomes of the script at `commit`."""
    try:
        with checkout.holding(commit):
            return _simulated(checkout, replace(simulation, words=checkout.words(simulation.words)))
    except UsageError as error:
        return RunOutcome(run=None, failure=str(error))


def _simulated(checkout: Checkout, simulation: Simulation) -> RunOutcome:
    if not checkout.directory.is_dir():
        return RunOutcome(run=None, failure="it does not have the working directory")
    outcome = simulate(simulation, directory=checkout.directory, search_path=checkout.search_path)
    left_by = outcome.run and checkout.left_by(outcome.run.capture)
    if left_by:
        return RunOutcome(run=None, failure=f"it runs {left_by} of the working tree, which is installed as editable")
    return outcome


def _shown(line: LineDifference | None, checkout: Checkout) -> LineDifference | None:
    if line is None:
        return None
    return replace(line, a_source=checkout.shown(line.a_source), b_source=checkout.shown(line.b_source))


def _result(outcome: RunOutcome) -> str:
    if outcome.run is None:
        return f"no answer ({outcome.failure})"
    return f"{format_bytes(outcome.run.report.peak.allocated_bytes)} allocated (predicted)"
