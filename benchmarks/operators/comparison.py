"""Which cases allocate on the virtual card what they allocated on a real one."""

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.operators.cases import Case, all_cases, selection
from benchmarks.operators.recording import VirtualCard, attempt, peak, warm_up
from peaksight.gpus import find_card, room_on
from peaksight.virtual_gpu.card import VirtualGpu
from peaksight.virtual_gpu.device_rules import rules_for
from peaksight.virtual_gpu.kernels.known_operators import family

MANY_STEPS = 10**9
NUM_PARTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One case: `kind` is same, order (the same blocks and the same peak), blocks (the same peak), peak or error."""

    case: str
    name: str
    signature: str
    kind: str
    events: dict[str, tuple[list[int] | None, list[int] | None]]
    error: str
    operators: frozenset[str]


def compare(
    measured: Path, only: str = "", containing: str = "", gpu: str = "h200", build: str = "2.11+cu130",
    part: int = 0, num_parts: int = 1,
) -> Iterator[Difference]:  # fmt: skip
    """Run every case of `measured` whose key begins with `only` and whose signature contains `containing`.

    Of `num_parts` parts, which share the work, only one.
    """
    truth = dict(_read(measured, only, containing))
    card = find_card(gpu)
    with VirtualGpu(room_on(card), rules_for(build, card), max_steps=MANY_STEPS, max_failures=0) as virtual_gpu:
        warm_up()
        ran = _operators_of(virtual_gpu)
        for case in all_cases(*selection(only), part=part, num_parts=num_parts):
            real = truth.get(case.key)
            if real is not None and real["signature"] == case.signature:
                ran.clear()
                virtual = attempt(case, VirtualCard(virtual_gpu), times=1)
                yield _judge(case, real, virtual, frozenset(ran))
            virtual_gpu.ledger.births.clear()


def _operators_of(gpu: VirtualGpu) -> set[str]:
    """A set that grows by the family of every operator that runs on `gpu`."""
    ran: set[str] = set()
    after = gpu.after

    def noted(func: Any, *rest: Any) -> None:
        ran.add(family(func))
        after(func, *rest)

    gpu.after = noted  # type: ignore[method-assign]
    return ran


def _read(measured: Path, only: str, containing: str) -> Iterator[tuple[str, dict]]:
    with gzip.open(measured, "rt") as file:
        for line in file:
            record = json.loads(line)
            if record.get("case", "").startswith(only) and containing in record.get("signature", ""):
                yield record.get("case", ""), record


def _judge(case: Case, real: dict, virtual: dict, operators: frozenset[str]) -> Difference:
    pairs = {name: (real[name], virtual.get(name)) for name in ("forward", "backward")}
    kind = "error" if "error" in virtual else _worst(*(_kind(*pair) for pair in pairs.values()))
    return Difference(
        case=case.key, name=f"{case.source} {case.name}", signature=case.signature, kind=kind, events=pairs,
        error=virtual.get("error", ""), operators=operators,
    )  # fmt: skip


KINDS = ("same", "order", "blocks", "peak")


def _worst(*kinds: str) -> str:
    return max(kinds, key=KINDS.index)


def _kind(real: list[int] | None, virtual: list[int] | None) -> str:
    if real == virtual:
        return "same"
    if real is None or virtual is None or peak(real) != peak(virtual):
        return "peak"
    return "order" if sorted(real) == sorted(virtual) else "blocks"


def compare_everything(measured: Path, gpu: str, build: str) -> Iterator[Difference]:
    """`compare` in as many processes as there are cores."""
    with ProcessPoolExecutor(mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        parts = [pool.submit(_part, measured, gpu, build, part) for part in range(NUM_PARTS)]
        for part in parts:
            yield from part.result()


def _part(measured: Path, gpu: str, build: str, part: int) -> list[Difference]:
    return list(compare(measured, gpu=gpu, build=build, part=part, num_parts=NUM_PARTS))
