"""Runs a system's script under the command line, and reads what it found."""

import json
from functools import cache
from pathlib import Path

from benchmarks.systems.cases import SYSTEMS
from helpers_commands import peaksight

# Too large for no system: what is tested is what is found.
CARD = ("--gpu", "h200")


@cache
def report_on(system: str, *words: str, options: tuple[str, ...] = ()) -> dict:
    """The report of `train.py` of `system` with the arguments `words`."""
    return report_in(SYSTEMS / system, *words, options=options)


def report_in(directory: Path, *words: str, options: tuple[str, ...] = ()) -> dict:
    """The report of the `train.py` of `directory`."""
    done = peaksight("run", "--json", "-", *CARD, *options, "train.py", *words, cwd=directory)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def finding(report: dict, rule: str) -> dict:
    """What `rule` found, which it has to have."""
    found = [each for each in report["findings"] if each["rule"] == rule]
    assert found, f"{rule} is not among {rules(report)}; refuted: {refuted(report).get(rule)}"
    return found[0]


def rules(report: dict) -> list[str]:
    """The rules of the findings, the most decisive first."""
    return [each["rule"] for each in report["findings"]]


def refuted(report: dict) -> dict[str, str]:
    """Why each other rule found nothing."""
    return {each["rule"]: each["why"] for each in report["examined"]}


def essence(report: dict) -> list[tuple]:
    """Of each finding what no name decides over: rule, bytes, line, and what its fixes save."""
    fixes = [[(fix["kind"], fix["saves_bytes"]) for fix in each["fixes"]] for each in report["findings"]]
    return [
        (each["rule"], each["bytes"], each["at"], each["without_effect"], of_it)
        for each, of_it in zip(report["findings"], fixes, strict=True)
    ]
