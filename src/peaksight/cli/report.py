"""`peaksight report`: the report of a saved run."""

from pathlib import Path
from typing import Any

import click

from peaksight.cli.exports import Run, export_options
from peaksight.cli.output import Output, quiet_option
from peaksight.cli.publish import Destinations, all_option, destination_options, publish
from peaksight.cli.watched import is_of_watched_run, publish_watched
from peaksight.diagnosis.diagnose import explained_report
from peaksight.gpus import Room
from peaksight.records.capture_file import read_capture_file


@click.command(short_help="Report a saved run again.")
@destination_options
@all_option
@export_options
@quiet_option
@click.argument("capture", type=click.Path(exists=True, path_type=Path))
def report(capture: Path, **options: Any) -> None:
    """Report CAPTURE, the file of a `peaksight run --save`, as that run did, or the directory of a `peaksight watch`.

    The script is not run again, and torch is not needed.
    """
    output = Output(quiet=options.pop("quiet"))
    to = Destinations(**options)
    to.check()
    if is_of_watched_run(capture):
        publish_watched(capture, to, output)
        return
    captures, room = read_capture_file(capture, Room)
    publish(Run(explained_report(captures, room), captures, room), to, output)
