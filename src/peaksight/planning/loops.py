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
    # A library that reads ahead has the batch of a step before it begins.
    loaders = tuple(sorted(loader for loader, read in seen.items() if len(read) >= len(steps) - 1 and read & steps))
    batches = [each for each in capture.batches if each.loader in loaders]
    if not batches or not all(each.batch_size for each in batches):
        return None
    backwards = Counter(each.step for each in capture.backwards if each.step in steps)
    return Loading(loaders, min(each.batch_size for each in batches), batches[0].at, max(backwards.values(), default=0))
