"""The peers, what each predicts, and how each is used."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A tool of the distribution `package`, asked by the `module` of this package, compared with `measured`."""

    module: str
    name: str
    package: str
    measured: str
    use: str


PEERS = (
    Peer(
        module="mem_tracker",
        name="MemTracker",
        package="torch",
        measured="peak_allocated",
        use="`torch.distributed._tools.mem_tracker.MemTracker` around every step of the script under `FakeTensorMode`, "
        "with model, optimizer and batch given to `track_external`. It adds up tensors: compared with allocated. On a "
        "machine without a GPU autograd takes no fake tensors of `cuda`, so that they are called those of the CPU.",
    ),
    Peer(
        module="preflight",
        name="torch-preflight",
        package="torch-preflight",
        measured="peak_reserved",
        use="`torch-preflight estimate --model` with the settings of the script, where the tool has the architecture "
        "that the script names; else `VRAMGuard` with model, optimizer and batch. Its projection less its CUDA context "
        "is compared with reserved, as `VRAMGuard.accuracy` does.",
    ),
    Peer(
        module="kitsune",
        name="torch-kitsune",
        package="torch-kitsune",
        measured="peak_reserved",
        use="`kitsune.predict.predict_memory` with the model, the shape of its batch and its optimizer. The total has "
        "15 % for the allocator: compared with reserved.",
    ),
    Peer(
        module="alloc",
        name="alloc",
        package="alloc",
        measured="peak_reserved",
        use="`alloc ghost` on a file that holds the model, with batch and sequence length. The total has 10 % for "
        "fragmentation: compared with reserved.",
    ),
)
