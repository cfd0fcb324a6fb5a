"""How the script gets its training batches."""

from collections import Counter
from dataclasses import dataclass

from peaksight.planning.situation import Situation


@dataclass(frozen=True, slots=True)
class Loading:
    """The DataLoaders that give the batches of every step, by their numbers, each batch of `batch_size` samples.

    `at` is the line that reads the first of them (`train.py:40`), `passes` how many backward passes a step has.
    """

    loaders: tuple[int, ...]
    batch_size: int
    at: str
    passes: int


def loading_of(situation: Situation) -> Loading | None:
    """None where a step may come without a batch of a DataLoader, or one says nothing of its batch size."""
    capture = situation.capture
    steps = {step.step for step in capture.steps if step.complete}
    seen = {loader: {each.step for each in capture.batches if each.loader == loader}
            for loader in {each.loader for each in capture.batches}}  # fmt: skip
    numbers = Counter(each.loader for each in capture.batches)
    loaders = tuple(sorted(loader for loader, read in seen.items()
                           if _is_of_every_step(read, numbers[loader], steps)))  # fmt: skip
    batches = [each for each in capture.batches if each.loader in loaders]
    if not batches or not all(each.batch_size for each in batches):
        return None
    backwards = Counter(each.step for each in capture.backwards if each.step in steps)
    return Loading(loaders, min(each.batch_size for each in batches), batches[0].at, max(backwards.values(), default=0))


def _is_of_every_step(read: set[int], num_batches: int, steps: set[int]) -> bool:
    """Whether `num_batches`, which were read in the steps `read`, are enough for all `steps`, and come with them.

    A library that reads ahead has the batch of a step before it begins: the last step of an epoch reads none.
    """
    return num_batches >= len(steps) - 1 and 2 * len(read & steps) >= len(steps)
