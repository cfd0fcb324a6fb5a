"""For the Trainer of transformers: `Trainer(..., callbacks=[WatchCallback()])`."""

from typing import Any

from transformers import TrainerCallback

from peaksight.live.session import Session
from peaksight.live.watching import Watching


class WatchCallback(TrainerCallback):
    """Records from the beginning of `train()` to its end, as `peaksight watch` does."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of `peaksight.live.watching.Watching`, as `directory` and `scalars`."""
        self._session = Session(Watching(**options))

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin to record."""
        self._session.begin()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """End the recording."""
        self._session.end()
