"""What kernels reach of a card's peak figures, by kind of operator: a file for each card measured, one for hosts."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log
from typing import Any

from peaksight.gpus import Card, find_card

MEASURED_ON = ("h100-80gb", "h200")
POINTWISE = "pointwise"
# What the figures of an arithmetic are taken from where a kind was not measured in it, best first.
_INSTEAD = {
    "half": ("tf32", "fp32"),
    "tf32": ("fp32", "half"),
    "fp32": ("tf32", "half"),
    "double": ("fp32", "tf32", "half"),
    "fp8": ("half", "tf32", "fp32"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the host takes: for an operator while autograd records, in a backward pass, and else; for a view of a
    tensor; for a call of a module, a backward pass, an optimizer's step and each parameter in it; for a checkpoint and
    each tensor that it saves; to ask a policy of selective checkpointing about an operator; to learn that the card is
    done. The fractions are of the link's bandwidth, from and to memory that is page-locked and that is not.
    """

    recording_seconds: float
    backward_seconds: float
    plain_seconds: float
    view_seconds: float
    module_seconds: float
    pass_seconds: float
    optimizer_seconds: float
    parameter_seconds: float
    region_seconds: float
    hook_seconds: float
    policy_seconds: float
    synchronize_seconds: float
    pinned_fraction: float
    pageable_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Of one kind of operators in one arithmetic: the `seconds` of a kernel that has nothing to do, and fractions.

    `bandwidth` is of the card's memory bandwidth, `bandwidth_in_l2` where all that a kernel touches fits in the L2
    cache; `flops` of the peak FLOP/s, 0 where that is never the limit.
    """

    seconds: float
    bandwidth: float
    bandwidth_in_l2: float
    flops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of operators.

    `host_seconds` is what the host takes for one beside what every operator takes, `tensor_seconds` for each tensor in
    its lists, and `result_seconds` for each that it makes. `reaches` is by arithmetic: `half` (both of 16 bits),
    `tf32`, `fp32`, `double` and `fp8`.
    """

    name: str
    reaches: dict[str, Reach]
    host_seconds: float = 0.0
    tensor_seconds: float = 0.0
    result_seconds: float = 0.0

    def reach(self, arithmetic: str) -> Reach:
        """That in `arithmetic`, or in what comes nearest to it."""
        known = (name for name in (arithmetic, *_INSTEAD[arithmetic]) if name in self.reaches)
        return self.reaches[next(known)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """The file of a card with that of hosts: `card`, `torch` and `date` say where it was measured."""

    card: str
    torch: str
    date: str
    host: Host
    kinds: dict[str, Kind]


@cache
def efficiencies(card: Card) -> Efficiencies:
    """Those that `card` is taken to reach.

    They are of the measured card that has as much bandwidth for each multiprocessor as `card`, or the nearest to that:
    the more there is for one, the less of it a kernel reaches.
    """
    return measured_on(min(MEASURED_ON, key=lambda name: abs(log(_share(find_card(name)) / _share(card)))))


def _share(card: Card) -> float:
    return card.bandwidth_bytes_per_second / card.multi_processor_count


@cache
def measured_on(name: str) -> Efficiencies:
    """What the file of the card called `name` says, and that of the hosts."""
    table, hosts = _read(name), _read("host")
    kinds = {kind: _kind(kind, facts, hosts["kinds"].get(kind, {})) for kind, facts in table.pop("kinds").items()}
    return Efficiencies(host=Host(**hosts["host"]), kinds=kinds, **table)


def listed_kind(operator: str) -> str:
    """The kind that lists `operator`, named without namespace and overload (`mm`)."""
    begins = (kind for start, kind in _starts() if operator.startswith(start))
    return _names().get(operator) or next(begins, POINTWISE)


def _kind(name: str, facts: dict[str, Any], on_host: dict[str, float]) -> Kind:
    return Kind(name=name, reaches={key: Reach(**value) for key, value in facts.items()}, **on_host)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def _names() -> dict[str, str]:
    """The kind of each operator that is listed by its name."""
    return {operator: kind for kind, operators in _read("operators").items() for operator in operators}


@cache
def _starts() -> tuple[tuple[str, str], ...]:
    """What the names of the operators begin with that are listed so, and their kind."""
    return tuple((name[:-1], kind) for name, kind in _names().items() if name.endswith("*"))
