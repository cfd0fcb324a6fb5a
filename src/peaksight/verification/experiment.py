"""The runs that a certificate takes, each made when it is first asked for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from peaksight.errors import PeaksightError
from peaksight.records import ScriptCommand
from peaksight.records.plan import Change
from peaksight.records.training import Job, Masks
from peaksight.verification.distances import Runs
from peaksight.verification.runs import Recording

# Runs a command as a job says: `runs.record`, or what stands for it.
Record = Callable[[ScriptCommand, Job], Recording]
Say = Callable[[str], None]

# How far initial weights are moved to see the slope of the loss in float64, and for one rounding in float32.
SLOPE_NUDGE = 2.0**-17
ROUNDING_NUDGE = 2.0**-24


@dataclass(kw_only=True)
class Experiment:
    """Both commands and where their recordings go; `say` is told of each run that starts.

    `changes` are those of a plan, which the changed command runs under.
    """

    original_command: ScriptCommand
    changed_command: ScriptCommand
    directory: Path
    steps: int
    record: Record
    say: Say
    changes: tuple[Change, ...] = ()
    why_not_exact: str = ""

    @cached_property
    def original(self) -> Recording:
        """The original, from which the others take their weights."""
        return self._run(self.original_command, "original", weights=False)

    @cached_property
    def repeated(self) -> Recording:
        """The original once more."""
        return self._run(self.original_command, "original, repeated")

    @cached_property
    def changed(self) -> Recording:
        """The changed script."""
        return self._run(self.changed_command, "changed")

    @cached_property
    def exact(self) -> tuple[Recording, Recording] | None:
        """Both in float64, None where one of them does not run so."""
        try:
            return (
                self._run(self.original_command, "original, float64", double=True),
                self._run(self.changed_command, "changed, float64", double=True),
            )
        except PeaksightError as error:
            self.why_not_exact = str(error).splitlines()[-1].removeprefix("No answer: ")
            return None

    @cached_property
    def jittered(self) -> Recording:
        """The original with initial weights moved by one rounding: what rounding can come to, without float64."""
        return self._run(self.original_command, "original, rounded", nudge=ROUNDING_NUDGE)

    def masked(self, masks: Masks) -> tuple[Recording, Recording]:
        """Both in float64, with other random masks than their own."""
        original, changed = (
            self._run(command, f"{name}, float64, {masks} masks", double=True, masks=masks)
            for command, name in ((self.original_command, "original"), (self.changed_command, "changed"))
        )
        return original, changed

    def nudged(self, *, changed: bool) -> tuple[Recording, Recording]:
        """One of them in float64 for one step, from weights moved forth and back."""
        command, name = (self.changed_command, "changed") if changed else (self.original_command, "original")
        forth, back = (
            self._run(command, f"{name}, float64, weights moved {way}", double=True, nudge=nudge, steps=1)
            for way, nudge in (("forth", SLOPE_NUDGE), ("back", -SLOPE_NUDGE))
        )
        return forth, back

    def runs(self) -> Runs:
        """What there is to compare without float64."""
        return Runs(original=self.original, repeated=self.repeated, changed=self.changed)

    def exact_runs(self) -> Runs:
        """What there is to compare, with float64 if it runs, else with what one rounding comes to."""
        if self.exact is None:
            return replace(self.runs(), repeated=self.jittered)
        return replace(self.runs(), original_exact=self.exact[0], changed_exact=self.exact[1])

    def _run(
        self,
        command: ScriptCommand,
        name: str,
        *,
        weights: bool = True,
        double: bool = False,
        masks: Masks = "own",
        nudge: float = 0.0,
        steps: int = 0,
    ) -> Recording:
        self.say(f"running the {name}")
        job = Job(
            directory=str(self.directory / name.replace(", ", "-").replace(" ", "-")),
            steps=steps or self.steps,
            double=double,
            masks=masks,
            weights=str(self.original.directory) if weights else "",
            nudge=nudge,
            changes=self.changes if name.startswith("changed") else (),
        )
        return self.record(command, job)
