"""The search for a plan for a script under JAX."""

from functools import partial

from peaksight.cli.candidates import failed
from peaksight.cli.jax_runs import host_settings, simulate_jax
from peaksight.cli.output import Output, stdout_nowhere
from peaksight.cli.progress import Progress
from peaksight.cli.searching import answered, no_original
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.diagnosis.diagnose import explained_report
from peaksight.planning.outcomes import outcome_of
from peaksight.planning.situation import Situation
from peaksight.records import WITHOUT_ANSWER, Capture, ScriptCommand
from peaksight.records.findings import Effect
from peaksight.records.proposals import Candidate, FixReport
from peaksight.virtual_gpu.pool import Pool, Simulation
from peaksight.virtual_gpu.script.environment import variables

_PRELOADED = ("jax", "peaksight.cli.jax_runs")


def search_jax(
    command: ScriptCommand,
    options: SimulationOptions,
    allowed: Effect,
    head_room: float,
    budget: int,
    output: Output,
) -> tuple[FixReport, Situation]:
    """Simulate the run as it is, then candidates in parallel, each a run of the script with changes."""
    captures = _original(command, options, output)
    capture = captures[0]
    pool_bytes = capture.pool_bytes or 0
    limit_bytes = round(min(options.room.usable_bytes, pool_bytes) * (1 - head_room / 100))
    situation = Situation(
        command=command,
        room=options.room,
        capture=capture,
        report=explained_report(captures, options.room),
        limit_bytes=limit_bytes,
        allowed=allowed,
    )
    summarise = partial(outcome_of, limit_bytes=limit_bytes, pool_bytes=pool_bytes)

    def each_as(candidate: Candidate) -> Simulation:
        num_gpus = options.gpus if candidate.ranks == 1 else candidate.ranks
        how = {"num_gpus": num_gpus, "max_steps": options.steps, "facts_of": "nothing"}
        return Simulation(command=command, options={**how, "changes": candidate.changes})

    with (
        variables(host_settings(1).items()),
        Pool(options.room, summarise, failed, simulate=simulate_jax, preloaded=_PRELOADED) as pool,
    ):
        return answered(situation, summarise(captures), pool, each_as, budget, output), situation


def _original(command: ScriptCommand, options: SimulationOptions, output: Output) -> tuple[Capture, ...]:
    output.progress("simulating the run as it is")
    progress = Progress(output)
    with stdout_nowhere():
        captures = simulate_jax(
            command,
            options.room,
            num_gpus=options.gpus,
            max_steps=options.steps,
            on_step=progress,
            on_compile=progress.compiling,
            facts_of="steps",
        )
    if captures[0].finished in WITHOUT_ANSWER:
        raise no_original()
    return captures
