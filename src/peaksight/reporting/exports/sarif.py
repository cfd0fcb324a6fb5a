"""Findings and the failure for code review tools: the Static Analysis Results Interchange Format, SARIF 2.1.0.

With what GitHub code scanning needs: URIs relative to the repository, a rule and a line for every result, and a
fingerprint that stays when lines move.
"""

import hashlib
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from peaksight import __version__
from peaksight.records import Finding, Report
from peaksight.reporting import why
from peaksight.reporting.github import Locate
from peaksight.reporting.sentences import verdict

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_OUT_OF_MEMORY = "out-of-memory"
_ROOT = "%SRCROOT%"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """What a rule is called, what it finds in one paragraph, and all of its text in Markdown."""

    title: str
    finds: str
    markdown: str


FAILURE_TEXT = RuleText(
    title="The run does not fit the GPU",
    finds="An allocation at this line asks for more than the card has left, and the script does not get over it.",
    markdown="The line is where `torch.OutOfMemoryError` is raised, predicted by simulating the run; which findings "
    "explain it are results of their own. `peaksight fix` searches for a plan that fits.",
)


@dataclass(frozen=True, slots=True)
class _Result:
    rule: str
    level: str
    message: str
    at: str
    num_bytes: int


def report_to_sarif(
    report: Report, rules: Mapping[str, RuleText], locate: Locate, line_texts: Mapping[str, str]
) -> bytes:
    """One run with a result for the failure and for each finding; `rules` has the texts of the rules on them.

    `locate` finds the files of the script, `line_texts` has what the lines of the script say, where that is known.
    """
    results = list(_results(report))
    used = list(dict.fromkeys(result.rule for result in results))
    texts = {_OUT_OF_MEMORY: FAILURE_TEXT, **rules}
    driver = {
        "name": "peaksight",
        "version": __version__,
        "rules": [_rule(slug, texts[slug]) for slug in used],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": True, "arguments": list(report.argv)}],
        "columnKind": "unicodeCodePoints",
        "results": list(_told(results, used, _Places(report, locate), line_texts)),
    }
    file = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def _results(report: Report) -> Iterator[_Result]:
    oom = report.oom
    if oom is not None or report.fits is False:
        level = "error" if report.fits is False else "warning"
        at = oom.at if oom is not None else report.peak.at
        yield _Result(_OUT_OF_MEMORY, level, verdict(report), at, oom.requested_bytes if oom is not None else 0)
    level = "note" if report.fits else "warning"
    for finding in why.shown_findings(report, show_all=True):
        yield _Result(finding.rule, level, _words(finding), finding.at or report.peak.at, finding.bytes)


def _words(finding: Finding) -> str:
    advice = (fix.text for fix in finding.fixes[:1])
    words = [f"{finding.title} ({why.size_of(finding)})", *advice, *finding.evidence]
    return " ".join(map(why.sentence, words))


class _Places:
    """Where lines are, as URIs: found, or else named by the folder of the script."""

    def __init__(self, report: Report, locate: Locate) -> None:
        self._script = next((word for word in report.argv if word != "-m"), "")
        self._locate = locate

    def of(self, at: str) -> tuple[str, int]:
        """The path and the line of `train.py:88`; the top of the script where nothing is known."""
        name, _, line = at.rpartition(":")
        if (found := self._locate(at)) is not None:
            return found
        if not line.isdigit():
            return self._script, 1
        return posixpath.join(posixpath.dirname(self._script), name), max(1, int(line))


def _told(
    results: Sequence[_Result], used: Sequence[str], places: _Places, line_texts: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for result in results:
        path, line = places.of(result.at)
        fingerprint = _fingerprint(result.rule, path, line_texts.get(result.at, ""))
        seen[fingerprint] += 1
        yield {
            "ruleId": result.rule,
            "ruleIndex": used.index(result.rule),
            "level": result.level,
            "message": {"text": _plain(result.message)},
            "locations": [{"physicalLocation": _physical(path, line)}],
            "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint}:{seen[fingerprint]}"},
            "properties": {"bytes": result.num_bytes, "at": result.at},
        }


def _physical(path: str, line: int) -> dict[str, Any]:
    artifact = {"uri": f"file://{quote(path)}"} if path.startswith("/") else {"uri": quote(path), "uriBaseId": _ROOT}
    return {"artifactLocation": artifact, "region": {"startLine": line}}


def _fingerprint(*parts: str) -> str:
    """The same for the same rule on the same text in the same file, wherever the line has gone."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:16]


def _rule(slug: str, text: RuleText) -> dict[str, Any]:
    return {
        "id": slug,
        "shortDescription": {"text": _plain(text.title)},
        "fullDescription": {"text": _plain(text.finds)},
        "help": {"text": _plain(text.markdown), "markdown": text.markdown},
        "properties": {"tags": ["gpu-memory"]},
    }


def _plain(words: str) -> str:
    """`words` as a message: braces would be places for arguments, and brackets before parentheses links."""
    return words.replace("{", "{{").replace("}", "}}").replace("](", "] (")
