"""What to simulate a script on: the options that every command which simulates shares."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import click

from peaksight.cli.completion import cards
from peaksight.cli.simulated import ALL
from peaksight.cli.sizes import SIZE
from peaksight.gpus import Card, Room, find_card, installed_card, room_on
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.ranks.world import with_ranks

MAX_GPUS = 16
_DEFAULT_CARD = "h100-80gb"


class _Ranks(click.ParamType[Any]):
    """`0`, `0,3` or `all`."""

    name = "rank"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value as it is typed."""
        if value != ALL and not all(rank.isdecimal() for rank in value.split(",")):
            self.fail(f"{value!r} is neither a rank, nor several as in 0,3, nor all.", param, ctx)
        return value


RANKS = _Ranks()

_OPTIONS = (
    click.option(
        "--gpu",
        metavar="NAME",
        shell_complete=cards,
        help="The card, see `peaksight gpus`. Default: this machine's, else h100-80gb.",
    ),
    click.option("--gpus", type=click.IntRange(1, MAX_GPUS), metavar="N", default=1, help="How many of it there are."),
    click.option("--memory", type=SIZE, metavar="SIZE", help="The card's total memory, as in 24GiB. Default: its own."),
    click.option("--reserved-by-others", type=SIZE, metavar="SIZE", default=0, help="What other processes hold of it."),
    click.option(
        "--ranks", type=click.IntRange(min=1), metavar="N", help="How many processes run SCRIPT, as by torchrun."
    ),
    click.option(
        "--rank",
        type=RANKS,
        metavar="R",
        help="The ranks to simulate, as in 0,3, or all. Default: the first and the last; the second if they differ.",
    ),
    click.option("--torch", metavar="VERSION", help="Take the device rules of this build, as in 2.11+cu130."),
    click.option(
        "--steps",
        type=click.IntRange(min=0),
        metavar="N",
        help="Stop after N steps, 0: it makes none. Default: once steady.",
    ),
    click.option("--worst-batch", is_flag=True, help="Make every batch of a DataLoader of the longest samples."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of a simulation; sizes in bytes, None where the option was not given."""

    gpu: str | None = None
    gpus: int = 1
    memory: int | None = None
    reserved_by_others: int = 0
    ranks: int | None = None
    rank: str | None = None
    torch: str | None = None
    steps: int | None = None
    worst_batch: bool = False

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> "SimulationOptions":
        """Those of `options` that are a simulation's, which are no longer in there then."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})

    @property
    def card(self) -> Card:
        """The card to simulate: the named one, else this machine's, else an H100; `--memory` replaces its total."""
        card = find_card(self.gpu) if self.gpu else installed_card() or find_card(_DEFAULT_CARD)
        return card if self.memory is None else replace(card, total_bytes=self.memory)

    @property
    def of_each(self) -> dict[str, Any]:
        """What each simulation of a candidate is called with; of several ranks the first that was asked for."""
        first = (self.rank or ALL).partition(",")[0]
        return {
            "num_gpus": self.gpus,
            "rank": 0 if first == ALL else int(first),
            "device_rules": self.torch,
            "max_steps": self.steps,
            "worst_batch": self.worst_batch,
        }

    def launched(self, command: ScriptCommand) -> ScriptCommand:
        """`command` as one of as many ranks as were asked for, those of its launcher without `--ranks`."""
        ranks, per_machine = self.ranks, self.gpus if self.gpus > 1 else None
        if ranks is None and per_machine is not None and command.per_card:
            ranks = command.processes * per_machine
        return command if ranks is None else with_ranks(command, ranks, per_machine)

    @property
    def room(self) -> Room:
        """What the script finds of the card."""
        return room_on(self.card, others_bytes=self.reserved_by_others)


def simulation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `SimulationOptions`."""
    for add_option in reversed(_OPTIONS):
        command = add_option(command)
    return command
