"""The table of scripts whose cause is known, `scripts/expected.toml`."""

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, kw_only=True)
class ExpectedCause:
    """What is expected of one script below `tests/scripts`.

    `rule` is the cause that drives its peak, `also` are rules that may come first as well. `holds` are the lines whose
    tensors are alive at the peak because of it, `held_mib` how many MiB, worked out by hand as `how` says. `peak_mib`
    is what was predicted: `before`, `fixed` (with `--fixed`) and `near_miss` (with `--near-miss`), of the `measure`.
    `pytest tests/test_expected_causes.py` checks that the table is well formed; it runs no script.
    """

    path: str
    family: str
    rule: str
    holds: list[str]
    held_mib: float
    how: str
    peak_mib: dict[str, float]
    report: str = ""
    also: list[str] = field(default_factory=list)
    gpu: str = "t4"
    launcher: str = ""
    options: str = ""
    arguments: str = ""
    measure: str = "allocated"

    @property
    def script(self) -> Path:
        """The script's file."""
        return SCRIPTS / self.path

    def lines(self) -> list[str]:
        """`holds` as peaksight names them: `file.py:line`."""
        texts = [line.strip() for line in self.script.read_text().splitlines()]
        return [f"{self.script.name}:{texts.index(text) + 1}" for text in self.holds]

    def command(self, *flags: str) -> list[str]:
        """What comes after `peaksight run`, with `flags` for the script."""
        options = ["--gpu", self.gpu, *self.options.split(), *self.launcher.split()]
        return [*options, str(self.script), *self.arguments.split(), *flags]


def expected_causes() -> list[ExpectedCause]:
    """Every entry, in the order of the file."""
    with (SCRIPTS / "expected.toml").open("rb") as file:
        return [ExpectedCause(**entry) for entry in tomllib.load(file)["script"]]
