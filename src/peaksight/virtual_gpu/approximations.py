"""What the run approximated, each once: the report's *Not simulated* list."""

from peaksight.records import Approximation

TEXTS = {
    "values": "{count} values read from the device are stand-ins (1.0, 1, False); the first at {at}",
    "shapes": "{count} shapes that depend on unknown values are upper bounds; the first at {at}",
    "compile": "torch.compile: the run is eager; compiled kernels fuse operators and allocate less or otherwise",
    "convolution-workspace": "workspaces of {count} cuDNN convolution calls",
    "attention-backward-workspace": "accumulators of {count} attention backward calls",
    "linalg-workspace": "workspaces of {count} linear algebra calls",
    "index-workspace": "temporaries of {count} sorts, scans and gradients of indexing",
    "recurrent-layers": "{count} calls of recurrent layers ran step by step; cuDNN's reserve and workspace differ",
    "sparse-gradients": "indices and values of {count} sparse tensors, such as gradients of sparse embeddings",
    "draws": "{count} random draws on the CPU give other values than in a real run; the first at {at}",
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
            Approximation(slug=slug, what=TEXTS[slug].format(count=count, at=at or "an unknown line"), bytes=None)
            for slug, (count, at) in self._seen.items()
        )
