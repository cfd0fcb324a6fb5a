"""How far a simulation is."""

import time

from peaksight.cli.output import Output
from peaksight.gpus import Room
from peaksight.records import StepPeak
from peaksight.reporting import again_line, progress_line


class Progress:
    """Says how far a simulation is, and counts its steps."""

    def __init__(self, output: Output) -> None:
        """Nothing has run."""
        self.num_steps = 0
        self._num_compiled = 0
        self._output = output
        self._started = time.perf_counter()

    def again(self, room: Room) -> None:
        """The run starts again."""
        self.num_steps = 0
        self._output.say(again_line(room.card.product_name))

    def another(self, rank: int, world_size: int) -> None:
        """Another rank is simulated."""
        self.num_steps = 0
        self._output.progress(f"rank {rank} of {world_size}")

    def compiling(self, name: str, trains: bool) -> None:
        """XLA begins to compile the jitted function `name`, which takes long where it is the one that trains."""
        self._num_compiled += 1
        self._output.progress(f"compiling {name} for the card", 0 if trains else self._num_compiled)

    def __call__(self, step: StepPeak) -> None:
        """A step has ended."""
        self.num_steps += 1
        self._output.progress(progress_line(step, time.perf_counter() - self._started), self.num_steps)
