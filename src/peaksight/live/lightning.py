"""For the Trainer of Lightning: `Trainer(..., callbacks=[WatchCallback()])`."""

from typing import Any

from lightning.pytorch import Callback

from peaksight.live.session import Session
from peaksight.live.watching import Watching


class WatchCallback(Callback):
    """Records from the beginning of `fit()` to its end, as `peaksight watch` does."""

    def __init__(self, **options: Any) -> None:
        """`options` are those of `peaksight.live.watching.Watching`, as `directory` and `scalars`."""
        self._session = Session(Watching(**options))

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin to record a `fit`."""
        if stage == "fit":
            self._session.begin()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Say what ended it, while its frames are there."""
        self._session.fail(exception)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """End the recording."""
        self._session.end()
