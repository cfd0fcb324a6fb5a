"""`make peers`: other tools and peaksight on the same workloads, in one run; writes docs/peers.md and its picture."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.accuracy.predictions import predict
from benchmarks.accuracy.workloads import Workload, workloads
from benchmarks.peers.answers import Answer, ask, keep, read_answers
from benchmarks.peers.page import Result, Results, render_page
from benchmarks.peers.tools import PEERS
from benchmarks.scatter import render_scatter

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    """Write the page and its picture if every workload was asked for; print it in any case."""
    options = _parse()
    results = _ask_all(workloads(tuple(options.only)), options)
    page = render_page(results, _versions(options.python))
    print(page, end="")
    if options.only == [""]:
        (DOCS / "peers.md").write_text(page, encoding="utf-8")
        (DOCS / "peers.svg").write_text(render_scatter(results.points), encoding="utf-8")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make peers", description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the peers installed")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes at a time (default: 2)")
    parser.add_argument("--cpu", type=float, default=120, metavar="SECONDS", help="for one answer (default: 120)")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="kept there: an interrupted run goes on")
    parser.add_argument("--only", nargs="+", default=[""], metavar="PREFIX", help="only these workloads; no page")
    return parser.parse_args()


def _ask_all(chosen: Sequence[Workload], options: argparse.Namespace) -> Results:
    kept = read_answers(options.answers) if options.answers else {}
    with ThreadPoolExecutor(options.jobs) as pool:
        return Results(list(pool.map(lambda workload: _ask(workload, kept.get(workload.name), options), chosen)))


def _ask(workload: Workload, kept: dict[str, Answer] | None, options: argparse.Namespace) -> Result:
    ours = predict(workload)
    if kept:
        return Result(prediction=ours, answers=kept)
    answers = ask(workload, python=options.python, cpu_seconds=options.cpu)
    if options.answers:
        keep(answers, workload.name, options.answers)
    for module, answer in answers.items():
        told = answer.reason or f"{answer.predicted_bytes:,d} bytes"
        print(f"{workload.name}: {module}: {told}, {answer.cpu_seconds:.0f} s", file=sys.stderr, flush=True)
    return Result(prediction=ours, answers=answers)


def _versions(python: str) -> dict[str, str]:
    """Of every peer's distribution, as installed for `python`."""
    packages = sorted({peer.package for peer in PEERS})
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    done = subprocess.run([python, "-W", "ignore", "-c", code, *packages], capture_output=True, text=True, check=True)
    return dict(zip(packages, done.stdout.split(), strict=True))


if __name__ == "__main__":
    main()
