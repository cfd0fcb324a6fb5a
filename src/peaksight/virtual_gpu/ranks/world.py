"""The world of a distributed run, and what a launcher tells each rank of it; imports no torch."""

from dataclasses import dataclass, replace

from peaksight.errors import UsageError
from peaksight.records import ScriptCommand

CARDS_A_MACHINE = 8
DEFAULT_PORT = 29500
# `python -m torch.distributed.launch` hands the script its rank on the machine as an argument.
_RANK_ARGUMENT = "--local-rank"


@dataclass(slots=True)
class World:
    """`size` ranks, `per_machine` of them on each machine, of which the rank `rank` is simulated.

    Of a script that starts its processes itself it is not known how many there are before it does.
    """

    rank: int = 0
    size: int = 1
    per_machine: int = 1

    @classmethod
    def of(cls, command: ScriptCommand, rank: int) -> "World":
        """That of a command, of one rank where nothing launches it."""
        told = dict(command.environment)
        return cls(rank, int(told.get("WORLD_SIZE") or 1), int(told.get("LOCAL_WORLD_SIZE") or 1))

    @property
    def local_rank(self) -> int:
        """The number of the rank on its machine."""
        return self.rank % self.per_machine

    def started(self, num_processes: int) -> int | None:
        """The script starts as many processes on each machine: the number of the simulated one, None if it is none."""
        self.size = max(self.size, num_processes)
        self.per_machine = max(self.per_machine, num_processes)
        return self.local_rank if self.local_rank < num_processes else None

    def met(self, rank: int, size: int) -> None:
        """The script makes a group of `size` ranks, of which it says that this is `rank`; the largest is the world."""
        if size >= self.size:
            self.rank, self.size = rank, size

    @property
    def rank_variables(self) -> dict[str, str]:
        """What differs from rank to rank of what `LocalElasticAgent._start_workers` sets."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "GROUP_RANK": str(self.rank // self.per_machine),
            "ROLE_RANK": str(self.rank),
        }

    @property
    def variables(self) -> dict[str, str]:
        """What it sets for the rank, as far as it tells of the world."""
        return self.rank_variables | {
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.per_machine),
            "GROUP_WORLD_SIZE": str(self.size // self.per_machine),
            "ROLE_WORLD_SIZE": str(self.size),
        }


def with_ranks(command: ScriptCommand, size: int, per_machine: int | None = None) -> ScriptCommand:
    """`command` as rank 0 of `size` ranks, by default as many on each machine as fit one with eight cards.

    Raises:
        UsageError: machines with `per_machine` cards cannot have that many.
    """
    if per_machine is None:
        per_machine = next(number for number in range(CARDS_A_MACHINE, 0, -1) if size % number == 0)
    if size % per_machine:
        raise UsageError(
            f"Can't put {size} ranks on machines with {per_machine} cards each: {size} is no multiple of "
            f"{per_machine}. Choose another --ranks or --gpus.",
            slug="ranks-per-machine",
        )
    default = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(DEFAULT_PORT)}
    environment = default | dict(command.environment) | World(0, size, per_machine).variables
    return replace(command, environment=tuple(environment.items()), processes=size)


def as_rank(command: ScriptCommand, rank: int) -> ScriptCommand:
    """`command` as another rank of its world sees it; one that nothing launches is the same for all."""
    told = dict(command.environment)
    if "RANK" not in told:
        return command
    world = World.of(command, rank)
    before, after = (f"{_RANK_ARGUMENT}={local_rank}" for local_rank in (told["LOCAL_RANK"], world.local_rank))
    args = (after, *command.args[1:]) if command.args[:1] == (before,) else command.args
    return replace(command, args=args, environment=tuple((told | world.rank_variables).items()))
