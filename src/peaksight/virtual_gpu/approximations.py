"""What the run approximated, each once: the report's *Not simulated* list."""

from collections import Counter

from peaksight.records import Approximation

MAX_NAMES = 5
TEXTS = {
    "values": "values read from the device {times}, first at {at}: stand-ins were given (1.0, 1, False)",
    "shapes": "shapes that depend on unknown values {times}, first at {at}: upper bounds or even shares were taken",
    "tokens": "generated tokens, first at {at}: no sequence ended before the longest that was asked for",
    "compile": "torch.compile, eager at {names}; compiled kernels fuse operators and allocate less or otherwise",
    "compile-mode": "torch.compile's {names}: without CUDA graphs, and with the kernels of cuBLAS and cuDNN",
    "compiled": "graphs that torch.compile made, {times}: planned by the compiler of the installed PyTorch",
    "flex-attention": "flex_attention, called {times}: counted as the kernels that torch.compile makes of it",
    "convolution-workspace": "workspaces of cuDNN convolutions beside copies of their tensors, called {times}",
    "linalg-workspace": "workspaces of linear algebra, called {times}",
    "index-workspace": "temporaries of sorts and selections, called {times}",
    "fft-workspace": "workspaces of Fourier transforms, called {times}",
    "recurrent-layers": "workspaces of recurrent layers, called {times}: known for cuDNN on Hopper in 16 and 32 bits",
    "skipped-steps": "steps that a GradScaler may skip for infinite gradients, and a state with them: none was",
    "sparse-gradients": "indices and values of sparse tensors, made {times}",
    "outside-estimated": "memory outside PyTorch of {names}: measured on Hopper only, scaled for this card",
    "unknown-operator": "workspaces of operators that no card was asked about, called {times}: {names}",
    "triton-kernels": "kernels written in Triton, launched {times}: {names}; what they wrote is not known",
    "nested-tensors": "nested tensors {times}, first at {at}: the words of all sequences were taken as one sequence",
    "record-stream": "memory that other streams use as its tensor dies {times}, first at {at}: for a predicted time",
    "stand-in": "{names}, not installed here but named by the script: as if it were, in the memory its source says",
    "worst-batch": "--worst-batch: {names}",
    "skipped-batches": "steps on the way to the largest batch, left out: {names}",
    "later-batches": "batches that were not looked at, of which larger ones may come: {names}",
    "same-ranks": "{names} ranks, of which each was simulated as if the others held what it holds",
    "pipeline-stages": "inputs of {names} of a pipeline: like the outputs of its first stage",
    "sharded-checkpoints": "checkpoints that the ranks save or load together, {times}: each did its own part alone",
    "after-training": "what follows the training: the script failed there with code {names}, and was stopped",
    "paged": "paged memory of CUDA, as that of paged optimizers: on the card while there is room beside PyTorch's",
    "outliers": "columns of outliers that bitsandbytes keeps in half precision, asked for {times}: none was taken",
    "growth": "steps after the last one of this run: each leaves {names} on the card",
    "communicator": "communicators of NCCL, outside PyTorch",
    "bucket-release": "what DistributedDataParallel reduced and dropped, which NCCL may keep for 0.1 s more",
    "missing-weights": "weights that are not in the local cache, done without: {names}",
    "threads": "operators that a second thread ran, {times}, first at {at}: in the order of this run",
    "chances": "random numbers of the card that decided a length or a branch {times}, first at {at}: other ones there",
    "medians": "single numbers that the CPU draws without a seed {times}, first at {at}: 0.5, so no layer is dropped",
    "draws": "random numbers drawn on the CPU {times}, first at {at}: a real run draws others",
}


class Approximations:
    """Counts approximations by slug, and where or in which operators each happened."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._counts: Counter[str] = Counter()
        self._places: dict[str, dict[str, None]] = {}
        self._bytes: Counter[str] = Counter()
        self._at_most: dict[str, int] = {}

    def note(self, slug: str, place: str = "", num_bytes: int = 0, at_most_bytes: int | None = None) -> None:
        """`slug` happened at a source line or in an operator; `num_bytes` is its size where that is known.

        Where only its bound is, that is `at_most_bytes`, of one at a time: the largest counts.
        """
        self._counts[slug] += 1
        self._bytes[slug] += num_bytes
        if at_most_bytes is not None:
            self._at_most[slug] = max(at_most_bytes, self._at_most.get(slug, 0))
        self._places.setdefault(slug, {}).setdefault(place)

    def first_place(self, slug: str) -> str | None:
        """Where `slug` happened first, None if it never did."""
        return next(iter(self._places.get(slug, ())), None)

    def records(self) -> tuple[Approximation, ...]:
        """For the capture."""
        return tuple(
            Approximation(
                slug=slug,
                what=self._text(slug),
                bytes=self._bytes[slug] or None,
                at_most_bytes=self._at_most.get(slug),
            )
            for slug in self._counts
        )

    def _text(self, slug: str) -> str:
        places = list(self._places[slug])
        at, names = places[0] or "an unknown line", _listed(places)
        return TEXTS[slug].format(times=_times(self._counts[slug]), at=at, names=names)


def _listed(places: list[str]) -> str:
    more = len(places) - MAX_NAMES
    return ", ".join(places[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
