"""Reads the table of cards."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

# CUDA C++ Programming Guide, technical specifications per compute capability; every other one holds 2048.
_FEWER_THREADS = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}
# The same: bytes of shared memory of a multiprocessor, and the most of them that one block may ask for.
_SHARED_BYTES = {
    (6, 0): (65536, 49152),
    (6, 1): (98304, 49152),
    (7, 0): (98304, 98304),
    (7, 5): (65536, 65536),
    (8, 0): (167936, 166912),
    (8, 7): (167936, 166912),
    (9, 0): (233472, 232448),
    (10, 0): (233472, 232448),
    (10, 3): (233472, 232448),
}
_SHARED_BYTES_ELSEWHERE = (102400, 101376)
# Of float64 to float32 where it is more than one in 64.
_DOUBLE_RATE = {(6, 0): 1 / 2, (7, 0): 1 / 2, (8, 0): 1.0, (9, 0): 1.0, (10, 0): 1 / 2, (6, 1): 1 / 32, (7, 5): 1 / 32}
# PCI Express 4.0 and 5.0 at 16 lanes, after line coding, by the major part of the capability; before, it was 3.0.
_PCIE_BYTES_PER_SECOND = {8: 31_508_000_000, 9: 63_015_000_000, 10: 63_015_000_000, 12: 63_015_000_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known of one card, or of one slice that Multi-Instance GPU cuts out of it.

    `name` is what `--gpu` takes, `aliases` are other names it goes by, `product_name` is what
    `torch.cuda.get_device_name` prints, `total_bytes` what torch reports as `total_memory`; `source` says how that
    number is known. `half_flop_per_second` is the dense rate of the tensor cores with fp32 accumulation, bf16 from
    capability 8.0 on, fp16 before, and without tensor cores the fp32 rate. `context_bytes` is what nvidia-smi shows
    for a process with a bare CUDA context, None where nobody measured it. `host_link_bytes_per_second` is there for a
    card whose link is not 16 lanes of PCI Express. `mig_profile` is that of a slice.
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
    host_link_bytes_per_second: int | None = None
    mig_profile: str | None = None

    @property
    def threads_per_multi_processor(self) -> int:
        """The threads that one multiprocessor can hold: `cudaDeviceProp.maxThreadsPerMultiProcessor`."""
        return _FEWER_THREADS.get(self.capability, 2048)

    @property
    def shared_bytes_per_multi_processor(self) -> int:
        """Shared memory of one multiprocessor: `cudaDeviceProp.sharedMemPerMultiprocessor`."""
        return _SHARED_BYTES.get(self.capability, _SHARED_BYTES_ELSEWHERE)[0]

    @property
    def shared_bytes_per_block(self) -> int:
        """The most shared memory that one block may ask for: `cudaDeviceProp.sharedMemPerBlockOptin`."""
        return _SHARED_BYTES.get(self.capability, _SHARED_BYTES_ELSEWHERE)[1]

    @property
    def tf32_flop_per_second(self) -> float:
        """The dense rate of the tensor cores for float32 that is rounded to TF32: NVIDIA's data sheets give half of
        that for 16 bits, from capability 8.0 on.
        """
        return self.half_flop_per_second / 2 if self.capability >= (8, 0) else self.fp32_flop_per_second

    @property
    def fp8_flop_per_second(self) -> float:
        """The dense rate of the tensor cores for 8 bits: twice that for 16 bits, from capability 8.9 on."""
        return self.half_flop_per_second * (2 if self.capability >= (8, 9) else 1)

    @property
    def double_flop_per_second(self) -> float:
        """The rate for float64: CUDA C++ Programming Guide, arithmetic instructions per multiprocessor; that of tensor
        cores is the rate for float32 where they have float64 at full speed.
        """
        return self.fp32_flop_per_second * _DOUBLE_RATE.get(self.capability, 1 / 64)

    @property
    def link_bytes_per_second(self) -> int:
        """The bandwidth to the host in one direction, of its generation of PCI Express at 16 lanes unless the table
        says otherwise.
        """
        return self.host_link_bytes_per_second or _PCIE_BYTES_PER_SECOND.get(self.capability[0], 15_754_000_000)

    @property
    def has_peers(self) -> bool:
        """Whether two such cards of one machine read each other's memory: GeForce cards and slices do not."""
        return "GeForce" not in self.product_name and self.mig_profile is None


@cache
def known_cards() -> tuple[Card, ...]:
    """Every whole card, in the order of the table."""
    return tuple(_card(name, facts) for name, facts in read_table("cards.toml").items())


def _card(name: str, facts: dict[str, Any]) -> Card:
    pairs: dict[str, Any] = {key: tuple(facts[key]) for key in ("capability", "aliases") if key in facts}
    about: dict[str, Any] = {**facts, **pairs, "name": name}
    return Card(**about)


def read_table(name: str) -> dict[str, dict[str, Any]]:
    """The sections of the TOML file `name` beside this module."""
    return tomllib.loads((files("peaksight.gpus") / name).read_text(encoding="utf-8"))
