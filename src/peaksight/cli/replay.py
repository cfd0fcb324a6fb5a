"""`peaksight replay`: an allocator trace through the simulated allocator."""

from pathlib import Path

import click
import msgspec

from peaksight.allocator import read_trace
from peaksight.allocator import replay as replay_trace


@click.command(short_help="Replay an allocator trace, and print its peaks as JSON.")
@click.argument("trace", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def replay(trace: Path) -> None:
    """Replay TRACE through the simulated caching allocator and print its peaks as JSON.

    TRACE is a .json or .json.gz list of [action, address, bytes, stream].
    """
    click.echo(msgspec.json.encode(replay_trace(read_trace(trace))))
