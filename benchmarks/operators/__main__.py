"""`python -m benchmarks.operators measure OUT` on a GPU; `... compare` anywhere, against what was measured."""

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.operators.cases import SOURCES, all_cases, selection
from benchmarks.operators.recording import RealCard, attempt, warm_up

if TYPE_CHECKING:
    from benchmarks.operators.comparison import Difference

ONLY = f"a source ({', '.join(SOURCES)}), or a source and the beginning of a name"
PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
MEASURED = Path(__file__).parent / "h200_2.11+cu130_2026-11-28.jsonl.gz"


def measure(out: Path, only: str, part: int, num_parts: int) -> None:
    """Write one JSON line a case: what it allocates the second time on this machine's GPU."""
    warm_up()
    with gzip.open(out, "wt") as file:
        facts = {"card": torch.cuda.get_device_name(), "torch": torch.__version__}
        print(json.dumps(facts | {"cudnn": torch.backends.cudnn.version()}), file=file)
        for case in all_cases(*selection(only), part=part, num_parts=num_parts):
            events = attempt(case, RealCard(), times=2)
            print(json.dumps({"case": case.key, "signature": case.signature} | events), file=file, flush=True)


def show(measured: Path, only: str, containing: str, gpu: str, build: str, details: int) -> None:
    """Print how many cases allocate the same, and up to `details` of the others for each operator."""
    from benchmarks.operators.comparison import compare

    counts: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for difference in compare(measured, only, containing, gpu, build):
        counts[difference.kind] += 1
        shown[difference.name] += difference.kind not in ("same", "order")
        if difference.kind not in ("same", "order") and shown[difference.name] <= details:
            _print(difference)
    print(
        "\nCases by operator that differ:",
        *(f"  {count:5} {name}" for name, count in shown.most_common() if count),
        sep="\n",
    )
    print("\n" + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()))


def publish(measured: Path, gpu: str, build: str) -> None:
    """Write docs/operators.md, and the list of measured operators that the virtual card reads."""
    from benchmarks.operators.comparison import compare_everything
    from benchmarks.operators.page import Page
    from peaksight.virtual_gpu.kernels import known_operators

    page, seen = Page(), set[str]()
    for difference in compare_everything(measured, gpu, build):
        page.add(difference)
        seen |= difference.operators if difference.kind in ("same", "order") else set()
    PAGE.write_text(page.text(build))
    listed = Path(known_operators.__file__).with_name("measured_operators.txt")
    listed.write_text("".join(f"{name}\n" for name in sorted(seen)))


def _print(difference: "Difference") -> None:
    print(f"{difference.kind}: {difference.case} | {difference.signature[:300]}")
    for name, (real, virtual) in difference.events.items():
        if real != virtual:
            print(f"    {name} measured  {str(real)[:500]}\n    {name} simulated {str(virtual)[:500]}")
    if difference.error:
        print(f"    {difference.error}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators")
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("out", type=Path)
    measuring.add_argument("--only", default="", help=ONLY)
    measuring.add_argument("--part", type=int, default=0)
    measuring.add_argument("--num-parts", type=int, default=1)
    measuring.set_defaults(run=measure)
    comparing = commands.add_parser("compare")
    comparing.add_argument("--only", default="", help=ONLY)
    comparing.add_argument("--containing", default="", help="only cases whose signature contains this")
    comparing.add_argument("--details", type=int, default=2)
    comparing.set_defaults(run=show)
    listing = commands.add_parser("publish")
    for command in (comparing, listing):
        command.add_argument("--measured", type=Path, default=MEASURED)
        command.add_argument("--gpu", default="h200")
        command.add_argument("--build", default="2.11+cu130")
    listing.set_defaults(run=publish)
    arguments = vars(parser.parse_args())
    arguments.pop("run")(**arguments)


if __name__ == "__main__":
    main()
