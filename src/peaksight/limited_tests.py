"""Tests that may need so much GPU memory and no more: what the pytest plugin does with a marked one."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from peaksight.errors import UsageError
from peaksight.library import option_words
from peaksight.pytest_plugin import INSIDE, MARKER
from peaksight.records import Report
from peaksight.reporting import report_from_json
from peaksight.reporting.limit import needs_more
from peaksight.settings import BUDGET, find_settings
from peaksight.units import parse_bytes

DEFAULT_GPU = "h100-80gb"
_KINDS = ("reserved", "allocated", "process")
# A test ends by itself.
_MANY_STEPS = 1_000_000
_LAST_LETTERS = 20_000
# What a test takes of the settings of its project: it makes as many steps as it makes.
_OF_A_CARD = ("gpu", "gpus", "memory", "reserved-by-others", "torch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a test may need: `limit_bytes` of `of` memory, on a card and with other options of `peaksight run`."""

    limit_bytes: int
    of: str
    options: dict[str, str | int]

    @classmethod
    def of_marker(cls, marker: pytest.Mark, directory: Path) -> "Limit":
        """As it is written at the test, the rest as in `[tool.peaksight]` for `directory`.

        Raises:
            pytest.UsageError: one of them makes no sense.
        """
        shared = _shared(directory)
        card = {key.replace("-", "_"): shared[key] for key in _OF_A_CARD if key in shared}
        options: dict[str, Any] = {"gpu": DEFAULT_GPU, **card, **marker.kwargs}
        of = options.pop("of", _KINDS[0])
        sizes = marker.args or tuple(shared[key] for key in (BUDGET,) if key in shared)
        if len(sizes) != 1 or of not in _KINDS:
            raise pytest.UsageError(f"{MARKER} takes one size, as in '8 GiB', and of= one of {', '.join(_KINDS)}")
        try:
            size = sizes[0] if isinstance(sizes[0], int) else parse_bytes(str(sizes[0]))
        except ValueError as error:
            raise pytest.UsageError(f"{MARKER}: {error}") from error
        return cls(limit_bytes=size, of=of, options=options)


def _shared(directory: Path) -> dict[str, Any]:
    try:
        settings = find_settings(directory)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    return {} if settings is None else settings.shared


def check(item: pytest.Item, marker: pytest.Mark) -> None:
    """Run `item` on a virtual GPU and fail with a report if it needs more than `marker` allows, or fails itself."""
    limit = Limit.of_marker(marker, item.config.rootpath)
    words = ["run", "--json", "-", "--steps", str(_MANY_STEPS), *option_words(limit.options), "-m", "pytest"]
    done = subprocess.run(
        [sys.executable, "-m", "peaksight", "--isolated", *words, *_arguments(item)],
        cwd=item.config.invocation_params.dir,
        env=os.environ | {INSIDE: "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode(errors="replace")
    if not done.stdout:
        pytest.fail(f"peaksight could not simulate the test:\n{said[-_LAST_LETTERS:]}", pytrace=False)
    report = report_from_json(done.stdout)
    needed = _needed_bytes(report, limit.of)
    if needed > limit.limit_bytes or (report.oom is not None and report.script_exit):
        pytest.fail(f"{item.name} {needs_more(report, needed, limit.limit_bytes, limit.of)}", pytrace=False)
    if report.script_exit:
        pytest.fail(f"the test fails when it is simulated:\n{said[-_LAST_LETTERS:]}", pytrace=False)
    pass_on(said)
    item.add_report_section("call", "peaksight", f"{needed} of {limit.limit_bytes} bytes {limit.of} (predicted)")


def _needed_bytes(report: Report, of: str) -> int:
    peak = report.peak
    return {"reserved": peak.reserved_bytes, "allocated": peak.allocated_bytes, "process": peak.process_bytes or 0}[of]


def _arguments(item: pytest.Item) -> Iterator[str]:
    """How pytest is called for this test alone, by the same configuration."""
    config = item.config
    yield from (
        "-q",
        "-rsx",
        "-p",
        "no:cacheprovider",
        "-p",
        "peaksight.pytest_plugin",
        "--rootdir",
        str(config.rootpath),
    )
    if config.inipath:
        yield from ("-c", str(config.inipath))
    if config.pluginmanager.has_plugin("xdist"):
        yield from ("-n", "0")
    yield "::".join([str(item.path), *item.nodeid.split("::")[1:]])


def pass_on(said: str) -> None:
    """Skip where the simulated test, which printed `said`, skipped itself; the same for one that may fail."""
    found = re.search(r"\b1 (skipped|xfailed)\b", said)
    if found is None:
        return
    reason = re.search(r"^(?:SKIPPED|XFAIL) .*$", said, re.MULTILINE)
    why = reason[0] if reason else found[0]
    if found[1] == "skipped":
        pytest.skip(why)
    pytest.xfail(why)
