"""TensorBoard: scalars in a folder of this rank."""

from pathlib import Path
from typing import Any

from peaksight.live.sinks import figures_of, tag_of
from peaksight.records.watched import Line, WatchedEvent, WatchedProcess, WatchedStep


class TensorBoardSink:
    """Writes scalars and events (as text) by torch's own writer, which the script's imports do not wait for."""

    def __init__(self, directory: Path, process: WatchedProcess) -> None:
        """Write below `directory`; nothing is imported or made before the first record."""
        self._directory = directory / f"rank{process.rank}"
        self._writer: Any = None
        self.name = f"TensorBoard in {self._directory}"

    def write(self, line: Line) -> None:
        """Show `line` if it is a step or an event."""
        if isinstance(line, WatchedStep):
            for name, value in figures_of(line).items():
                self._opened().add_scalar(tag_of(name, line.device), value, line.step, line.time)
        elif isinstance(line, WatchedEvent):
            self._opened().add_text(f"peaksight/{line.kind}", line.text, line.step, line.time)

    def close(self) -> None:
        """Write what is left."""
        if self._writer:
            self._writer.close()

    def _opened(self) -> Any:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._directory))
        return self._writer
