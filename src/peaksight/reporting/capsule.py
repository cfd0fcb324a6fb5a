"""The page of `peaksight read` for the OOM capsules of a run: who failed first, why, and what surrounded it."""

import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from peaksight.records.capsule import CapsuleHolder
from peaksight.records.capsule_report import CapsuleReport, RunReading
from peaksight.records.watched import WatchedStep
from peaksight.reporting.reading import causes_table, ranks_table
from peaksight.reporting.recording import recording_sections
from peaksight.reporting.recording_sentences import CANNOT_TELL, RUN_NEXT, TRY_FIRST, WHY
from peaksight.reporting.tables import columns
from peaksight.reporting.wrapping import MAX_WIDTH, print_sentence
from peaksight.units import format_bytes

NUM_STEPS = 6
NUM_PROCESSES = 8
NUM_HOLDERS = 10

# A name and what it says.
Row = tuple[str, str]


def render_run(reading: RunReading, console: Console) -> None:
    """Print `reading` on `console`; what happened comes first."""
    width = min(console.width, MAX_WIDTH)
    print_sentence(console, reading.happened, "bold red")
    for title, body in _sections(reading, console):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(Padding(body, (0, 0, 0, 1)), width=width)
    console.print()
    print_sentence(console, " - ".join(_origin(reading)), "dim")


def _sections(reading: RunReading, console: Console) -> Iterator[tuple[str, RenderableType]]:
    """Titles and bodies; a section without content is left out."""
    if reading.others:
        yield "The other ranks", ranks_table(reading.others)
    report = reading.report
    if report is None:
        return
    lines = [line for line in (report.happened, report.then) if line != reading.happened]
    yield "What happened", Text("\n".join(lines))
    if report.causes:
        yield WHY, causes_table(report.causes)
        yield TRY_FIRST, Text(report.causes[0].try_first)
    yield "Where and when", _rows(circumstances(report))
    if report.steps:
        yield "The last steps", _steps(report.steps, report.failure.card.device)
    if report.failure.card.processes:
        yield "On the card", _processes(report)
    if report.recording is not None:
        shown = replace(report.recording, causes=(), cannot_tell=(), run_next="")
        yield from recording_sections(shown, console)
    elif report.holders:
        yield "Alive, by module and line", _holders(report.holders)
    if report.cannot_tell:
        yield CANNOT_TELL, _bullets(report.cannot_tell)
    yield RUN_NEXT, Text(report.run_next, style="bold")


def circumstances(report: CapsuleReport) -> Iterator[Row]:
    """Where and when it was, what ran there, and of which releases."""
    failure, run, card = report.failure, report.run, report.failure.card
    if report.at:
        yield "line", report.at
    if report.backward_at and report.backward_at != report.at:
        yield "backward called at", report.backward_at
    if failure.modules:
        yield "in the module", failure.modules[-1]
    yield "time", time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(failure.time)) + " UTC"
    yield "process", f"rank {run.process.rank} of {run.process.world_size}, {run.process.host}, pid {run.process.pid}"
    if run.scheduler:
        yield "SLURM", ", ".join(f"{name.removeprefix('SLURM_')} {value}" for name, value in run.scheduler.items())
    if card.total_bytes is not None:
        yield f"card {card.device}", f"{card.name}, {format_bytes(card.total_bytes)}{_sizes(report)}"
    yield "releases", ", ".join(_releases(report))
    if run.settings:
        yield "allocator", run.settings
    if run.host.limit_bytes is not None:
        yield "host memory", f"{format_bytes(run.host.used_bytes or 0)} of {format_bytes(run.host.limit_bytes)} used"
    kills = _kills(report)
    if kills:
        yield "host", f"has killed {kills} process(es) of this job for want of memory (RAM) since it started"
    yield "command", shlex.join(run.process.argv)


def _sizes(report: CapsuleReport) -> str:
    card = report.failure.card
    sizes = (("allocated", card.allocated_bytes), ("reserved", card.reserved_bytes), ("free", card.free_bytes),
             ("allowed", card.allowed_bytes), ("others'", report.others_bytes or None))  # fmt: skip
    return "".join(f", {format_bytes(size)} {name}" for name, size in sizes if size is not None)


def _releases(report: CapsuleReport) -> Iterator[str]:
    run, driver = report.run, report.failure.card.driver
    for name, release in (("torch", run.torch), ("CUDA", run.cuda), ("NCCL", run.nccl), ("driver", driver)):
        if release:
            yield f"{name} {release}"
    yield f"Python {run.process.python}"
    yield f"peaksight {run.process.peaksight}"


def _kills(report: CapsuleReport) -> int:
    before, run = report.run.host_at_start.oom_kills, report.run
    after = report.ending.host.oom_kills if report.ending else run.host.oom_kills
    return (after or 0) - (before or 0)


def _steps(steps: Iterable[WatchedStep], device: int) -> Table:
    table = columns(">", ">", ">", ">", ">", header=("step", "allocated", "reserved", "left", "retries"), indent=0)
    for step in [step for step in steps if step.device in (None, device)][-NUM_STEPS:]:
        sizes = map(format_bytes, (step.peak_allocated_bytes, step.peak_reserved_bytes, step.allocated_bytes))
        table.add_row(str(step.step), *sizes, str(step.retries))
    return table


def _processes(report: CapsuleReport) -> Table:
    table = columns(">", "<", ">", "<", indent=0)
    for process in report.failure.card.processes[:NUM_PROCESSES]:
        size = "unknown" if process.bytes is None else format_bytes(process.bytes)
        table.add_row(str(process.pid), Text(process.name), size, "this one" if process.is_this else "")
    return table


def _holders(holders: tuple[CapsuleHolder, ...]) -> Table:
    table = columns(">", ">", "<", "<", header=("bytes", "blocks", "module", "line"), indent=0)
    for each in holders[:NUM_HOLDERS]:
        place = Text(each.source, overflow="fold")
        table.add_row(format_bytes(each.bytes), str(each.count), Text(each.module, overflow="fold"), place)
    return table


def _rows(rows: Iterable[Row]) -> Table:
    table = columns("<", "<", indent=0)
    for name, text in rows:
        table.add_row(name, Text(text, overflow="fold"))
    return table


def _bullets(lines: Iterable[str]) -> Table:
    table = columns("<", "<", indent=0)
    for line in lines:
        table.add_row("-", Text(line))
    return table


def _origin(reading: RunReading) -> Iterator[str]:
    if reading.report:
        yield reading.report.file
    if reading.run:
        yield f"run {reading.run}"
