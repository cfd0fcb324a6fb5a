"""Starts recorded runs as forks of a process that has imported torch already.

What imports torch's functions by name has to be imported after they are watched: of libraries there is only torch.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.forks import Forks
from peaksight.verification.processes import start_process

_CHILD = "peaksight.verification.child"


class RecordedForks:
    """Runs what `record` starts in forks; what a launcher starts gets processes of its own."""

    def __init__(self) -> None:
        """Import what the first optimizer does, and `use_deterministic_algorithms`."""
        self._forks = Forks("torch._inductor")
        self.close = self._forks.close

    def start(self, words: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
        """Run `words` with their output in `log`, and return the exit code; `peaksight.verification.runs.Start`."""
        if list(words[1:3]) != ["-m", _CHILD]:
            return start_process(words, environment, log)
        streams = (Path(os.devnull), log, log)
        return self._forks.run(words[2:], directory=Path.cwd(), environment=environment, streams=streams)
