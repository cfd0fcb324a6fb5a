"""How a figure changes from step to step."""

from collections import deque

_NUM_SAMPLES = 16


class Trend:
    """The line of least squares through the last samples."""

    def __init__(self, num_samples: int = _NUM_SAMPLES) -> None:
        """There is no sample yet."""
        self._samples: deque[tuple[int, int]] = deque(maxlen=num_samples)

    def add(self, step: int, value: int) -> None:
        """`value` was measured in `step`."""
        self._samples.append((step, value))

    @property
    def slope(self) -> float | None:
        """The change per step; None from less than three samples."""
        if len(self._samples) < 3:
            return None
        mean_step = sum(step for step, _ in self._samples) / len(self._samples)
        mean_value = sum(value for _, value in self._samples) / len(self._samples)
        spread = sum((step - mean_step) ** 2 for step, _ in self._samples)
        return sum((step - mean_step) * (value - mean_value) for step, value in self._samples) / spread
