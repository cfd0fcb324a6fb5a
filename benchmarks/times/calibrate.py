"""`python -m benchmarks.times.calibrate`: fits the figures of cards and of their hosts to microbenchmarks alone.

The virtual card says which operators a microbenchmark is of. For each kind and arithmetic the figures are those with
the smallest squared error of the logarithm of time. The hosts are virtual machines of one kind, and still one was half
as fast again as another: what is fitted is a host of their mean speed.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from math import exp, log
from pathlib import Path
from statistics import geometric_mean, mean, median
from typing import Any

from benchmarks.times.policies import FILE as POLICIES
from benchmarks.times.policies import NUM_IDENTITIES
from benchmarks.times.recording import Operator, operators_of_cases, phases_of_hosts
from peaksight.gpus import Card, find_card
from peaksight.virtual_gpu.timing import efficiencies, roofline
from peaksight.virtual_gpu.timing.efficiencies import MEASURED_ON, POINTWISE, Kind, Reach
from peaksight.virtual_gpu.timing.work import Work

MEASURED = Path(__file__).with_name("measured")
CHECKPOINTS = MEASURED / "checkpoints.json"
FOLDER = Path(efficiencies.__file__).parent
HOST = ("recording", "backward", "plain", "view", "module", "pass", "optimizer", "parameter")
# The cases of checkpoints.py that are a model of hosts.py.
COMMON = {"block": "blocks", "opt": "opt", "phi": "phi"}
# Nothing but one operator over and over stays in the caches of the processor, as no training does.
HOT = ("activations", "norms")
_STEP, _SMALLEST_STEP = 0.5, 1e-3
# No kernel takes less, and none that has nothing to do takes more.
_SECONDS = log(1.8e-6), log(2e-5)


def search(error: Callable[[Sequence[float]], float], start: Sequence[float]) -> list[float]:
    """The place of the smallest error, found by steps along each axis that get shorter."""
    place, smallest, step = list(start), error(start), _STEP
    while step > _SMALLEST_STEP:
        moved = False
        for axis in range(len(place)):
            for change in (step, -step):
                tried = [*place[:axis], place[axis] + change, *place[axis + 1 :]]
                if (found := error(tried)) < smallest - 1e-12:
                    place, smallest, moved = tried, found, True
                    break
        if not moved:
            step /= 2
    return place


def fit_reach(kind: str, arithmetic: str, cases: list[tuple[Work, float]], card: Card) -> Reach:
    """The figures of `kind` in `arithmetic` for works and what they took on `card`."""
    computes = any(work.flops for work, _ in cases) and not kind.startswith("grouped")

    def reach(place: Sequence[float]) -> Reach:
        seconds, bandwidth, in_l2, *flops = map(exp, place)
        return Reach(seconds=seconds, bandwidth=bandwidth, bandwidth_in_l2=in_l2, flops=flops[0] if flops else 0.0)

    def error(place: Sequence[float]) -> float:
        if max(place[1:]) > log(2.0) or not _SECONDS[0] <= place[0] <= _SECONDS[1]:
            return float("inf")
        fitted = Kind(name=kind, reaches={arithmetic: reach(place)})
        times = ((roofline.seconds_of(work, fitted, arithmetic, card), seconds) for work, seconds in cases)
        return sum(log(predicted / seconds) ** 2 for predicted, seconds in times)

    start = [log(4e-6), log(0.8), log(1.0), *([log(0.5)] if computes else [])]
    return reach(search(error, start))


def fit_reaches(measured: dict[str, Any], card: Card) -> dict[str, dict[str, Reach]]:
    """By kind and arithmetic, from the cases whose time is that of one operator, whatever was copied before it."""
    cases: dict[tuple[str, str], list[tuple[Work, float]]] = defaultdict(list)
    for name, operators in operators_of_cases(card).items():
        *copies, operator = operators
        if all(copied.kind == POINTWISE for copied in copies):
            cases[operator.kind, operator.arithmetic].append((operator.work, measured[name][0]))
    fitted: dict[str, dict[str, Reach]] = defaultdict(dict)
    for (kind, arithmetic), of_kind in cases.items():
        fitted[kind][arithmetic] = fit_reach(kind, arithmetic, of_kind, card)
    return fitted


def fit_speeds(hosts: dict[str, Any], cases: dict[str, Any]) -> dict[str, float]:
    """How much longer the host took in each session than one of their mean speed: of the cards, and `checkpoints`."""
    first = hosts[MEASURED_ON[0]]
    ratios = {
        name: [phases[phase] / first[host][phase] for host, phases in each.items() for phase in phases]
        for name, each in hosts.items()
    }
    ratios["checkpoints"] = [
        seconds / first[f"{model} foreach {amp}"][phase]
        for case, model in COMMON.items()
        for amp in (False, True)
        for phase, seconds in zip(("forward", "backward"), cases[f"{case} {amp}"]["plain"], strict=True)
    ]
    slower = {name: geometric_mean(each) for name, each in ratios.items()}
    return {name: each / geometric_mean(slower.values()) for name, each in slower.items()}


def fit_host(hosts: dict[str, Any], speeds: dict[str, float], table: dict[str, Any]) -> dict[str, float]:
    """The seconds of `HOST`, from the phases of small models, whose kinds of operators take what `table` says."""
    ran = phases_of_hosts(find_card(MEASURED_ON[0]))
    rows = [
        (phase.counts, _beside(phase.operators, table), each[host][name] / speeds[session])
        for session, each in hosts.items()
        for host, phases in ran.items()
        for name, phase in phases.items()
        if phase.operators and not host.startswith(HOT)
    ]

    def error(place: Sequence[float]) -> float:
        seconds = dict(zip(HOST, map(exp, place), strict=True))
        return sum(
            log((beside + sum(seconds[name] * count for name, count in counts.items())) / theirs) ** 2
            for counts, beside, theirs in rows
        )

    return dict(zip(HOST, map(exp, search(error, [log(5e-6)] * len(HOST))), strict=True))


def _beside(operators: Iterable[Operator], table: dict[str, Any]) -> float:
    return sum(_of_kind(of.work, *_host_figures(table[of.kind])) for of in operators)


def _host_figures(facts: dict[str, Any]) -> tuple[float, float, float]:
    return tuple(facts.get(f"{name}_seconds", 0.0) for name in ("host", "tensor", "result"))  # type: ignore[return-value]


def _of_kind(work: Work, host: float, tensor: float, result: float) -> float:
    return host + tensor * work.num_tensors + result * work.num_new_tensors


def fit_kinds_on_host(measured: dict[str, Any], card: Card) -> dict[str, dict[str, float]]:
    """What the host takes for an operator of each kind beside a pointwise one, from cases that call one alone."""
    times: dict[str, list[tuple[Work, float]]] = defaultdict(list)
    for name, operators in operators_of_cases(card).items():
        if len(operators) == 1 and not name.split()[0].endswith("_backward"):
            times[operators[0].kind].append((operators[0].work, measured[name][1]))
    plain = median(seconds for _, seconds in times[POINTWISE])
    found = {
        kind: {"host_seconds": max(0.0, median(seconds for _, seconds in cases) - plain)}
        for kind, cases in times.items()
    }
    for kind in ("foreach", "fused"):
        found[kind] = fit_lists(times[kind], plain)
    backward = {f"{kind}_backward": facts for kind, facts in found.items()}
    return backward | found


def fit_lists(cases: list[tuple[Work, float]], plain: float) -> dict[str, float]:
    """What the host takes for each tensor in the lists of an operator, and for each that it makes."""

    def error(place: Sequence[float]) -> float:
        figures = tuple(map(exp, place))
        return sum(abs(log((plain + _of_kind(work, *figures)) / seconds)) for work, seconds in cases)

    names = ("host_seconds", "tensor_seconds", "result_seconds")
    return dict(zip(names, map(exp, search(error, [log(2e-6), log(2e-7), log(2e-7)])), strict=True))


def fit_policies(host: dict[str, Any]) -> float:
    """What the host takes to ask a policy about an operator.

    Measured without a card, and scaled by how long both machines take to call modules that do nothing.

    The backward of those has as many operators as their forward, and no calls.
    """
    found = json.loads(POLICIES.read_text())
    idle = [phases for name, phases in host.items() if name.startswith("identities")]
    forward, backward = (min(phases[name] for phases in idle) for name in ("forward", "backward"))
    slower = (forward - backward) / NUM_IDENTITIES / found["call_seconds"]
    return slower * found["policy_seconds"] / found["num_asked"]


def fit_checkpoints(cases: dict[str, Any], speed: float) -> dict[str, float]:
    """What the host takes for each checkpoint, and for each tensor that it saves, in the forward and again."""

    def error(place: Sequence[float]) -> float:
        region, hook = map(exp, place)
        return sum(
            log((each["begun"] * region + each["taken"] * hook) / 2 / (each["extra_seconds"] / speed)) ** 2
            for each in cases.values()
        )

    names = ("region_seconds", "hook_seconds")
    return dict(zip(names, map(exp, search(error, [log(3e-4), log(3e-5)])), strict=True))


def fit_copies(measured: dict[str, float], card: Card, num_bytes: int = 2**24) -> dict[str, float]:
    """The fractions of the link, and what it takes to wait for a card that has nothing to do."""
    link = card.link_bytes_per_second
    found = {
        f"{name}_fraction": num_bytes / link / measured[f"to card, {name}, {num_bytes}"]
        for name in ("pinned", "pageable")
    }
    return {"synchronize_seconds": measured["item"], **found}


def _text(table: dict[str, Any]) -> str:
    lines = ["# As timing/efficiencies.py describes it; written by benchmarks/times/calibrate.py.", ""]
    lines += [f"{name} = {json.dumps(value)}" for name, value in table.items() if not isinstance(value, dict)]
    if "host" in table:
        lines += ["", "[host]", *(f"{name} = {seconds:.3g}" for name, seconds in table["host"].items())]
    for kind, facts in table["kinds"].items():
        entries = [line for name, value in facts.items() for line in _entry(name, value)]
        lines += ["", f"[kinds.{kind}]", *entries] if entries else []
    return "\n".join(lines) + "\n"


def _entry(name: str, value: Any) -> list[str]:
    if isinstance(value, float):
        return [f"{name} = {value:.2g}"] if value else []
    return [f"{name} = {{ {', '.join(f'{key} = {figure:.3g}' for key, figure in value.items() if figure)} }}"]


def _write(name: str, table: dict[str, Any]) -> None:
    (FOLDER / f"{name}.toml").write_text(_text(table))


def _kinds() -> dict[str, list[str]]:
    return tomllib.loads((FOLDER / "operators.toml").read_text())


def _means(tables: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: mean(table[name] for table in tables) for name in tables[0]}


def calibrate_host(measured: dict[str, Any]) -> None:
    """Write the figures of the host."""
    cases = json.loads(CHECKPOINTS.read_text())["cases"]
    hosts = {name: each["host"] for name, each in measured.items()}
    speeds = fit_speeds(hosts, cases)
    of_kinds = {name: fit_kinds_on_host(each["kernels"], find_card(name)) for name, each in measured.items()}
    kinds = {
        kind: {what: mean(each[kind][what] / speeds[name] for name, each in of_kinds.items()) for what in facts}
        for kind, facts in of_kinds[MEASURED_ON[0]].items()
        if kind in _kinds()
    }
    host = {f"{name}_seconds": value for name, value in fit_host(hosts, speeds, defaultdict(dict, kinds)).items()}
    host |= fit_checkpoints(cases, speeds["checkpoints"])
    host["policy_seconds"] = mean(fit_policies(each) / speeds[name] for name, each in hosts.items())
    host |= _means([fit_copies(each["copies"], find_card(name)) for name, each in measured.items()])
    beside = [f"{each['machine']['card']}, {each['machine']['date']}" for each in measured.values()]
    torch = measured[MEASURED_ON[0]]["machine"]["torch"]
    print(speeds)
    _write("host", {"torch": torch, "beside": beside, "host": host, "kinds": kinds})


def calibrate_card(name: str, measured: dict[str, Any]) -> None:
    """Write the figures of the card called `name`."""
    reaches = fit_reaches(measured["kernels"], find_card(name))
    kinds = {
        kind: {arithmetic: asdict(reach) for arithmetic, reach in sorted(reaches[kind].items())} for kind in _kinds()
    }
    _write(name, {each: measured["machine"][each] for each in ("card", "torch", "date")} | {"kinds": kinds})


def main() -> None:
    """Write all files."""
    measured = {name: json.loads((MEASURED / name / "micro.json").read_text()) for name in MEASURED_ON}
    calibrate_host(measured)
    for name, each in measured.items():
        calibrate_card(name, each)


if __name__ == "__main__":
    main()
