"""`fix --cheapest`: the smallest card."""

import time
from functools import partial

from peaksight.cli.candidates import failed, simulated, simulation_of
from peaksight.cli.output import Output, Tried
from peaksight.cli.publish import Destinations
from peaksight.cli.simulation_options import SimulationOptions
from peaksight.cli.sweeps import publish_sweep
from peaksight.gpus import Room, known_cards, room_on
from peaksight.planning.cheapest import cheapest
from peaksight.planning.outcomes import outcome_of
from peaksight.records import ScriptCommand
from peaksight.records.proposals import Candidate, FixReport, Outcome
from peaksight.records.sweep import SweepReport


def answer_cheapest(
    plans: FixReport,
    command: ScriptCommand,
    options: SimulationOptions,
    head_room: float,
    to: Destinations,
    output: Output,
) -> int:
    """Look for the smallest card with one of `plans`, print a table, and return the exit code: 0 if there is one."""
    from peaksight.virtual_gpu.pool import Pool

    each_as = partial(simulation_of, command=command, how=options.of_each)

    def simulate(candidate: Candidate, room: Room, limit_bytes: int) -> Outcome:
        def tell(title: str) -> None:
            tried(f"{title}, on {room.card.name}")

        with Pool(room, partial(outcome_of, limit_bytes=limit_bytes), failed, workers=1) as pool:
            return next(iter(simulated([candidate], pool=pool, each_as=each_as, tell=tell)))

    started, tried = time.perf_counter(), Tried(output)
    rooms = [room_on(card, others_bytes=options.reserved_by_others) for card in known_cards()]
    rows = tuple(cheapest(plans, rooms, 1 - head_room / 100, simulate))
    best = rows[-1] if rows and rows[-1].tried.fits else None
    seconds = plans.seconds + time.perf_counter() - started
    found = SweepReport(argv=command.argv, asked="cheapest", flag="--gpu", rows=rows, best=best, seconds=seconds)
    publish_sweep(found, to, output)
    return 0 if best else 1
