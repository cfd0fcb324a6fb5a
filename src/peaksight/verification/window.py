"""One optimizer step in the making: what happens from the first forward to the last update."""

from collections import Counter

from torch import Tensor

from peaksight.records.training import Dropout, TrainingStep
from peaksight.verification.batches import Batches


class Window:
    """Collects the facts and the tensors of one optimizer step.

    `tensors` has them by kind and name: gradient, parameter, buffer, state.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.batches = Batches()
        self.losses: list[float] = []
        self.tokens: list[int] = []
        self.lrs: tuple[float, ...] = ()
        self.dropout: Counter[float] = Counter()
        self.tensors: dict[str, dict[str, Tensor]] = {"gradient": {}, "parameter": {}, "buffer": {}, "state": {}}
        self.without_gradient: list[str] = []
        self.optimizer_steps = 0
        self.checkpointed_regions = 0
        self.clippings = 0
        self.autocast = ""
        self.slope: float | None = None
        self.random_state = ""

    def record(self, schedulers: list[tuple[str, int]]) -> TrainingStep:
        """The facts."""
        return TrainingStep(
            losses=tuple(self.losses),
            samples=self.batches.samples,
            tokens=tuple(self.tokens),
            columns=self.batches.columns(),
            lrs=self.lrs,
            optimizer_steps=self.optimizer_steps,
            schedulers=tuple(sorted(schedulers)),
            without_gradient=tuple(self.without_gradient),
            checkpointed_regions=self.checkpointed_regions,
            clippings=self.clippings,
            dropout=tuple(Dropout(rate=rate, elements=count) for rate, count in sorted(self.dropout.items())),
            autocast=self.autocast,
            slope=self.slope,
            random_state=self.random_state,
        )
