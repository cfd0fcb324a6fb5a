"""The pages of commands but `run`: each with the JSON of the command and the numbers that are derived from it."""

import importlib.util
import pickle
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from helpers import holder_of, peak_of, report_of
from helpers_capsules import ended_by_memory, failure_of, process_of, steps_of, write_capsule
from peaksight.attribution import build_recording_report, build_watched_report
from peaksight.cli.left_behind import trace_in
from peaksight.diagnosis.logs import explain, explain_job
from peaksight.diagnosis.recordings import diagnosed
from peaksight.diagnosis.runs import explain_runs
from peaksight.postmortem import read_log
from peaksight.postmortem.snapshots import read_snapshot
from peaksight.records import Category, Phase
from peaksight.records.certificate import BlockDifference, Certificate, Invariant, LossDifference, Mechanism, Worst
from peaksight.records.jax_program import ProgramCall
from peaksight.records.proposals import Tried
from peaksight.records.sweep import SweepReport, SweptValue
from peaksight.records.watched import Watched, WatchedCard, WatchedEnd, WatchedEvent
from peaksight.reporting import differences
from peaksight.reporting.json import (
    answers_to_json,
    certificate_to_json,
    comparison_to_json,
    fix_to_json,
    report_to_json,
    sweep_to_json,
    watched_to_json,
)
from peaksight.reporting.pages.certificate_page import certificate_to_html
from peaksight.reporting.pages.comparison_page import commits_to_html, comparison_to_html
from peaksight.reporting.pages.fix_page import fix_to_html, sweep_to_html
from peaksight.reporting.pages.read_page import answers_to_html
from peaksight.reporting.pages.report_page import report_to_html
from peaksight.reporting.pages.watched_page import watched_to_html
from peaksight.units import GIB, MIB


def _of_tests(name):
    """A module of tests/unit/reporting, of which the records are used here too."""
    path = Path(__file__).parent / "unit" / "reporting" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


found = _of_tests("test_incident").found
larger_batch, five_commits = (getattr(_of_tests("test_comparison"), name) for name in ("larger_batch", "five_commits"))


def certificate_of(**about):
    """Two runs that are the same up to rounding."""
    facts = {
        "schema": "peaksight.certificate/1",
        "original": ("train.py",),
        "changed": ("train.py", "--fused"),
        "verdict": "rounding",
        "noise": "",
        "reasons": ("rounding explains what the gradient of 2.bias differs by",),
        "notes": (),
        "worst": Worst(
            kind="gradient", name="2.bias", block="2", step=1, rank=0, relative=1e-7, tolerance=1e-6, excess=0.1
        ),
        "loss": LossDifference(step=2, original=0.5, changed=0.25),
        "blocks": (BlockDifference(block="2", relative=1e-7, smallest_caught=1e-5),),
        "smallest_caught": 1e-5,
        "noise_floor": 0.0,
        "invariants": (Invariant(name="samples", original="8", changed="4", same=False, step=1),),
        "mechanisms": (Mechanism(name="dropout active", original=False, changed=False),),
        "steps": 2,
        "ranks": 1,
        "weights": "the same by their seeds",
        "batches": "the same samples in every step",
        "reference": "none",
        "device": "cpu",
        "torch": "2.14.1",
        "seconds": 3.0,
    }
    verdict = about.get("verdict", "rounding")
    return Certificate(**(facts | about | {"same": verdict in ("bitwise", "rounding")}))


CERTIFICATE = certificate_of()


def sweep():
    """Two batches, of which one fits."""
    rows = tuple(
        SweptValue(
            value=value,
            gpu="t4",
            limit_bytes=24 * GIB,
            tried=Tried(candidate=tried.candidate, outcome=tried.outcome, fits=fits, verdict=verdict),
        )
        for value, tried, fits, verdict in (("8", found().best, True, ""), ("16", found().original, False, "too large"))
    )
    return SweepReport(argv=("train.py",), asked="sweep", flag="--batch", rows=rows, best=rows[0], seconds=2.0)


def _of_plans(report):
    """Head room, and what a plan is too large by."""
    everything = (report.original, *report.tried, *report.runners_up, *report.next_plans)
    sizes = {each.outcome.reserved_bytes for each in everything}
    return {limit - size for limit in (report.usable_bytes, report.limit_bytes) for size in sizes}


def _of_card(report):
    """What of the card is free."""
    return {
        report.gpu.usable_bytes - report.peak.reserved_bytes,
        report.peak.reserved_bytes - report.peak.allocated_bytes,
    }


def _of_comparison(comparison):
    """Differences, and sums of rows that are shown as one."""
    rows = [
        *differences.peak_rows(comparison),
        *differences.phase_rows(comparison),
        *differences.cause_rows(comparison),
    ]
    for table in differences.tables(comparison):
        rows += [*table.rows, *filter(None, (table.others, table.total))]
    return {size for row in rows for size in (row.a_bytes, row.b_bytes, row.difference_bytes) if size is not None}


def _read(name):
    """What `peaksight read` answers to made-up files of one kind."""
    with TemporaryDirectory() as folder:
        if name == "snapshot":
            path = Path(folder, "snapshot.pickle")
            path.write_bytes(pickle.dumps(snapshot()))
            return [diagnosed(build_recording_report(read_snapshot(path, None), path.name))]
        if name == "capsule":
            write_capsule(Path(folder), process_of(1), failure_of(), steps=steps_of(until=3), ending=ended_by_memory())
            return explain_runs([trace_in(path) for path in Path(folder).iterdir()])
    logs = {name: read_log(BytesIO(text), name) for name, text in LOGS.items()}
    return [explain_job(logs)] if name == "job" else [explain(logs["rank6.log"])]


def snapshot():
    """A block is freed, and another one keeps its segment."""
    stack = [{"filename": "/home/me/train.py", "line": 10, "name": "train"}]
    whole, half = {"size": 20 * MIB, "frames": stack}, {"size": 10 * MIB, "frames": stack}
    events = [
        {"action": "segment_alloc", "addr": 1 << 40, **whole},
        {"action": "alloc", "addr": 1 << 40, **half},
        {"action": "alloc", "addr": (1 << 40) + 10 * MIB, **half},
        {"action": "free_requested", "addr": 1 << 40, **half},
        {"action": "free_completed", "addr": 1 << 40, **half},
        {"action": "oom", "device_free": 0, **whole},
    ]
    return {"segments": [], "device_traces": [events]}


LOGS = {
    "rank0.log": b"NCCL communicator was aborted on rank 0.\n",
    "rank6.log": (
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 6 has a total capacity of "
        b"23.65 GiB of which 208.06 MiB is free. Process 2271801 has 23.44 GiB memory in use. Of the allocated memory "
        b"22.87 GiB is allocated by PyTorch, and 6.23 MiB is reserved by PyTorch but unallocated.\n"
    ),
}


def jax_report():
    """A job of two jitted functions."""
    calls = [("init", Phase.INIT, 1, 3), ("train_step", Phase.FORWARD, 5, 7)]
    programs = tuple(
        ProgramCall(
            name=name,
            phase=phase,
            first_step=0,
            num_calls=count,
            peak_bytes=gib * GIB,
            argument_bytes=GIB,
            output_bytes=GIB // 2,
            temporary_bytes=gib * GIB // 4,
        )
        for name, phase, count, gib in calls
    )
    held = holder_of(7 * GIB, Category.ACTIVATION)
    return report_of(held, programs=programs, torch="jax 0.11", peak=peak_of(7 * GIB, reserved_bytes=8 * GIB))


def watched_run():
    """Two ranks of which one was predicted, and something went wrong."""
    records = []
    for rank in (0, 1):
        steps = steps_of(until=3)
        if rank == 0:
            steps = [
                replace(step, predicted_allocated_bytes=9 * GIB, predicted_reserved_bytes=9 * GIB) for step in steps
            ]
        end = WatchedEnd(step=3, time=0.0, exit_code=rank, error="OutOfMemoryError" if rank else "")
        event = WatchedEvent(kind="retry", step=2, time=0.0, text="the card was full")
        card = WatchedCard(device=0, name="Tesla T4", total_bytes=15 * GIB, torch="2.14.1", settings="")
        process = replace(process_of(rank, world_size=2), started=1.0)
        records.append(Watched(process=process, cards=(card,), steps=tuple(steps), events=(event,), end=end))
    return build_watched_report(records)


def _pages():
    plans, comparison, commits, certified = found(), larger_batch(), five_commits(), certificate_of()
    yield "fix", (fix_to_html(plans), fix_to_json(plans), _of_plans(plans))
    certified_plans = found(certificate=certified)
    yield "certified", (fix_to_html(certified_plans), fix_to_json(certified_plans), _of_plans(certified_plans))
    yield "sweep", (sweep_to_html(sweep()), sweep_to_json(sweep()), ())
    yield "compare", (comparison_to_html(comparison), comparison_to_json(comparison), _of_comparison(comparison))
    yield "commits", (commits_to_html(commits), comparison_to_json(commits), ())
    yield "verify", (certificate_to_html(certified), certificate_to_json(certified), ())

    under_jax = jax_report()
    yield "jax", (report_to_html(under_jax), report_to_json(under_jax), _of_card(under_jax))
    watched = watched_run()
    yield "watch", (watched_to_html(watched), watched_to_json(watched), ())
    for name in ("log", "job", "snapshot", "capsule"):
        answers = _read(name)
        yield name, (answers_to_html(answers), answers_to_json(answers), ())


PAGES = dict(_pages())
