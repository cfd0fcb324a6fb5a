"""What kernels and PyTorch reach of a card's peak figures, by kind of operator: `efficiencies.toml`."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from peaksight.gpus import Card

POINTWISE = "pointwise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the host takes: for an operator while autograd records, in a backward pass, and else; for a view of a
    tensor; for a call of a module, and for each parameter in an optimizer's step; to learn that the card is done. The
    fractions are of the link's bandwidth, from and to memory that is page-locked and that is not.
    """

    recording_seconds: float
    backward_seconds: float
    plain_seconds: float
    view_seconds: float
    module_seconds: float
    parameter_seconds: float
    synchronize_seconds: float
    pinned_fraction: float
    pageable_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of operators; the fields are those of the file.

    The fractions of peak FLOP/s are by the arithmetic: `half` (both of 16 bits), `tf32`, `fp32`, `double` and `fp8`.
    """

    name: str
    operators: tuple[str, ...]
    seconds: float
    bandwidth: float
    bandwidth_in_l2: float
    half: float = 0.5
    tf32: float = 0.5
    fp32: float = 0.5
    double: float = 0.5
    fp8: float = 0.5
    host: float = 0.0
    per_tensor: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiencies:
    """The whole file: `card`, `torch` and `date` say where it was measured."""

    card: str
    torch: str
    date: str
    host: Host
    kinds: dict[str, Kind]

    def kind_of(self, operator: str) -> Kind:
        """The kind of `operator`, named without namespace and overload (`mm`)."""
        listed = _names().get(operator)
        begins = (kind for start, kind in _starts() if operator.startswith(start))
        return self.kinds[listed or next(begins, POINTWISE)]


@cache
def efficiencies() -> Efficiencies:
    """What the file says."""
    table = tomllib.loads(files(__package__).joinpath("efficiencies.toml").read_text(encoding="utf-8"))
    kinds = {name: _kind(name, facts) for name, facts in table.pop("kinds").items()}
    return Efficiencies(host=Host(**table.pop("host")), kinds=kinds, **table)


def _kind(name: str, facts: dict) -> Kind:
    return Kind(**{**facts, "name": name, "operators": tuple(facts["operators"])})


@cache
def _names() -> dict[str, str]:
    """The kind of each operator that is listed by its name."""
    return {operator: kind.name for kind in efficiencies().kinds.values() for operator in kind.operators}


@cache
def _starts() -> tuple[tuple[str, str], ...]:
    """What the names of the operators begin with that are listed so, and their kind."""
    return tuple((name[:-1], kind) for name, kind in _names().items() if name.endswith("*"))


def peak_flop_per_second(card: Card, arithmetic: str) -> float:
    """The dense peak of `card` for a field of `Kind`: `half`, `tf32`, `fp32`, `double` or `fp8`."""
    return float(getattr(card, f"{arithmetic}_flop_per_second"))
