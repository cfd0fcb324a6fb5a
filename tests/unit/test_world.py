"""Which rank of a world a command is run as."""

import pytest

from peaksight.errors import UsageError
from peaksight.records import ScriptCommand
from peaksight.virtual_gpu.ranks.world import World, as_rank, with_ranks

TRAIN = ScriptCommand(target="train.py", args=("--lr", "1"), environment=(("A", "1"),))


@pytest.mark.parametrize(
    ("size", "cards", "per_machine"), [(1, None, 1), (4, None, 4), (12, None, 6), (512, None, 8), (8, 2, 2)]
)
def test_ranks_fill_machines(size, cards, per_machine):
    """Of up to eight cards, or of as many as are said."""
    told = dict(with_ranks(TRAIN, size, cards).environment)

    assert (told["WORLD_SIZE"], told["LOCAL_WORLD_SIZE"]) == (str(size), str(per_machine))
    assert (told["RANK"], told["A"], told["MASTER_PORT"]) == ("0", "1", "29500")


def test_machines_that_are_not_full():
    """Six ranks need more than one machine of four cards, and leave the second half empty."""
    with pytest.raises(UsageError, match="6 is no multiple of 4") as caught:
        with_ranks(TRAIN, 6, 4)

    assert caught.value.slug == "ranks-per-machine"


def test_another_rank():
    """It is told its place in the world and on its machine."""
    told = dict(as_rank(with_ranks(TRAIN, 16), 11).environment)

    assert {name: told[name] for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")} == {
        "RANK": "11", "LOCAL_RANK": "3", "GROUP_RANK": "1",
    }  # fmt: skip


def test_the_rank_is_an_argument():
    """As `torch.distributed.launch` gives it, but not where the script has one of that name by itself."""
    launched = with_ranks(ScriptCommand(target="train.py", args=("--local-rank=0", "-x")), 4)

    assert as_rank(launched, 3).args == ("--local-rank=3", "-x")
    assert as_rank(with_ranks(TRAIN, 4), 3).args == TRAIN.args


def test_a_command_that_nothing_launches():
    """All ranks are started by the script itself, by which it is known then how many they are."""
    world = World.of(TRAIN, 3)

    assert as_rank(TRAIN, 3) is TRAIN
    assert (world.started(4), world.size, world.local_rank) == (3, 4, 3)
    assert (world.started(2), world.size) == (None, 4)
    world.met(0, 2)
    assert (world.rank, world.size) == (3, 4)
