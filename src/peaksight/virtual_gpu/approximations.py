"""What the run approximated, each once: the report's *Not simulated* list."""

from peaksight.records import Approximation

TEXTS = {
    "values": "values read from the device {times}, first at {at}: stand-ins were given (1.0, 1, False)",
    "shapes": "shapes that depend on unknown values {times}, first at {at}: their upper bounds were taken",
    "compile": "torch.compile: the run is eager; compiled kernels fuse operators and allocate less or otherwise",
    "convolution-workspace": "workspaces of cuDNN convolutions, called {times}",
    "attention-backward-workspace": "copies in the backward of flash attention, called {times}",
    "linalg-workspace": "workspaces of linear algebra, called {times}",
    "index-workspace": "temporaries of sorts, scans and gradients of indexing, called {times}",
    "recurrent-layers": "recurrent layers ran step by step {times}; cuDNN's reserve and workspace differ",
    "sparse-gradients": "indices and values of sparse tensors, made {times}",
    "draws": "random numbers drawn on the CPU {times}, first at {at}: a real run draws others",
}


class Approximations:
    """Counts approximations by slug, and where each happened first."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._seen: dict[str, tuple[int, str]] = {}

    def note(self, slug: str, at: str = "") -> None:
        """`slug` happened at source line `at`."""
        count, first = self._seen.get(slug, (0, at))
        self._seen[slug] = (count + 1, first)

    def records(self) -> tuple[Approximation, ...]:
        """For the capture; none of them has a known size."""
        return tuple(
            Approximation(
                slug=slug, what=TEXTS[slug].format(times=_times(count), at=at or "an unknown line"), bytes=None
            )
            for slug, (count, at) in self._seen.items()
        )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
