"""`peaksight read`: a crash that already happened, explained from its log or its memory snapshot."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from peaksight.cli.left_behind import expanded, trace_in
from peaksight.cli.output import STDOUT, Output, quiet_option
from peaksight.cli.pages import answers_page
from peaksight.cli.publish import Destinations, destination_options, write_file
from peaksight.cli.snapshots import read_recording
from peaksight.diagnosis.logs import explain, explain_job, rank_of
from peaksight.diagnosis.run_traces import Trace
from peaksight.diagnosis.runs import explain_runs
from peaksight.errors import CaptureFileError, UsageError
from peaksight.postmortem import read_log
from peaksight.postmortem.notebooks import printed_by
from peaksight.postmortem.profiles import is_profile, read_profile
from peaksight.postmortem.snapshots import is_snapshot
from peaksight.records import JobReading, LogEvidence, Reading
from peaksight.records.capsule_report import RunReading
from peaksight.records.device_profile import DeviceProfile
from peaksight.records.recording import RecordingReport
from peaksight.reporting.capsule import render_run
from peaksight.reporting.device_profile import render_device_profile
from peaksight.reporting.json import answers_to_json
from peaksight.reporting.reading import render_job, render_reading
from peaksight.reporting.recording import render_recording

Found = LogEvidence | RecordingReport | DeviceProfile | Trace
Answer = Reading | JobReading | RecordingReport | DeviceProfile | RunReading

_NO_ANSWER = 2
_FILE = click.Path(allow_dash=True, path_type=Path)


@click.command(short_help="Explain a crash from its log or its memory snapshot.")
@destination_options
@quiet_option
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
def read(files: tuple[Path, ...], **options: Any) -> int:
    """Explain a crash from its log or its memory snapshot.

    FILE holds error text, mixed with anything (- is stdin; of a notebook the outputs are read), or is what
    torch.cuda.memory._dump_snapshot() or jax.profiler.save_device_memory_profile() wrote, or `peaksight watch`: an OOM
    capsule, or the directory of a run. Logs of several ranks of one job are read together, as are the files of a
    watched run.

    Needs neither torch nor a GPU. The exit code is 0 if a file says something about memory, else 2.
    """
    output = Output(quiet=options.pop("quiet"))
    to = Destinations(**options)
    to.check()
    answers = [answer for answer in _answers(dict(_found(files, output))) if _says(answer)]
    if not answers:
        output.warn(f"{_names(files)}: nothing about memory that peaksight knows.")
        return _NO_ANSWER
    _publish(answers, to, output)
    return 0


def _found(files: tuple[Path, ...], output: Output) -> Iterator[tuple[str, Found]]:
    """What each file holds; one of a directory that cannot be read does not hinder the others."""
    for path in expanded(files):
        try:
            yield str(path), _read(path, output)
        except CaptureFileError as error:
            if path in files:
                raise
            output.warn(str(error))


def _answers(found: Mapping[str, Found]) -> list[Answer]:
    """What each launch left as one answer, the logs of the ranks of one job as another, anything else by itself."""
    logs = {path: log for path, log in found.items() if isinstance(log, LogEvidence)}
    named = {log.root_cause_rank for log in logs.values()} - {None}
    traces = [trace for trace in found.values() if isinstance(trace, Trace)]
    runs = explain_runs(traces, named.pop() if len(named) == 1 else None)
    job = explain_job(logs)
    if job:
        found = {path: file for path, file in found.items() if path not in logs or rank_of(path, logs[path]) is None}
    others = [file for file in found.values() if not isinstance(file, Trace)]
    alone = [explain(file) if isinstance(file, LogEvidence) else file for file in others]
    return [*runs, *([job] if job else []), *alone]


def _read(path: Path, output: Output) -> Found:
    """What one file holds."""
    try:
        if path == STDOUT:
            return read_log(sys.stdin.buffer, "stdin")
        if is_snapshot(path):
            return read_recording(path, output)
        if is_profile(path):
            return read_profile(path)
        if trace := trace_in(path):
            return trace
        with path.open("rb") as stream:
            return read_log(printed_by(stream) if path.suffix == ".ipynb" else stream, path.name)
    except (OSError, EOFError) as error:
        cause = getattr(error, "strerror", None) or error
        raise UsageError(f"Can't read {path}: {cause}; name a log, or - for stdin.", slug="cannot-read") from error


def _says(answer: Answer) -> bool:
    """Whether it says something about memory."""
    return not isinstance(answer, Reading) or bool(answer.messages or answer.causes or answer.checks)


def _publish(answers: list[Answer], to: Destinations, output: Output) -> None:
    """Print the pages, unless the JSON takes stdout, and write the file asked for."""
    if page := to.html:
        write_file(page, lambda path: path.write_bytes(answers_page(answers).encode(errors="replace")), output)
    if to.json == STDOUT:
        output.print(answers_to_json(answers))
        return
    for position, answer in enumerate(answers):
        if position:
            output.print("\n")
        output.draw(_page(answer))
    if to.json:
        write_file(to.json, lambda path: path.write_text(answers_to_json(answers), encoding="utf-8"), output)


def _page(answer: Answer) -> Callable[[Console], None]:
    if isinstance(answer, RecordingReport):
        return partial(render_recording, answer)
    if isinstance(answer, RunReading):
        return partial(render_run, answer)
    if isinstance(answer, DeviceProfile):
        return partial(render_device_profile, answer)
    return partial(render_job, answer) if isinstance(answer, JobReading) else partial(render_reading, answer)


def _names(files: tuple[Path, ...]) -> str:
    return ", ".join("stdin" if path == STDOUT else path.name for path in files)
