"""Reads the table of cards."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# CUDA C++ Programming Guide, technical specifications per compute capability; every other one holds 2048.
_FEWER_THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known of one card, or of one slice that Multi-Instance GPU cuts out of it.

    `name` is what `--gpu` takes, `aliases` are other names it goes by, `product_name` is what
    `torch.cuda.get_device_name` prints, `total_bytes` what torch reports as `total_memory`; `source` says how that
    number is known. `half_flop_per_second` is the dense rate of the tensor cores with fp32 accumulation, bf16 from
    capability 8.0 on, fp16 before, and without tensor cores the fp32 rate. `context_bytes` is what nvidia-smi shows
    for a process with a bare CUDA context, None where nobody measured it. `mig_profile` is that of a slice.
    """

    name: str
    product_name: str
    total_bytes: int
    multi_processor_count: int
    capability: tuple[int, int]
    bandwidth_bytes_per_second: int
    half_flop_per_second: float
    fp32_flop_per_second: float
    l2_bytes: int
    source: str
    aliases: tuple[str, ...] = ()
    context_bytes: int | None = None
    mig_profile: str | None = None

    @property
    def threads_per_multi_processor(self) -> int:
        """The threads that one multiprocessor can hold: `cudaDeviceProp.maxThreadsPerMultiProcessor`."""
        return _FEWER_THREADS.get(self.capability, 2048)

    @property
    def has_peers(self) -> bool:
        """Whether two such cards of one machine read each other's memory: GeForce cards and slices do not."""
        return "GeForce" not in self.product_name and self.mig_profile is None


@cache
def known_cards() -> tuple[Card, ...]:
    """Every whole card, in the order of the table."""
    return tuple(_card(name, facts) for name, facts in read_table("cards.toml").items())


def _card(name: str, facts: dict) -> Card:
    pairs = {key: tuple(facts[key]) for key in ("capability", "aliases") if key in facts}
    return Card(**{**facts, **pairs, "name": name})


def read_table(name: str) -> dict[str, dict]:
    """The sections of the TOML file `name` beside this module."""
    return tomllib.loads((files("peaksight.gpus") / name).read_text(encoding="utf-8"))
