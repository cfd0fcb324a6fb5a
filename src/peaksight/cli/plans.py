"""`--plan FILE`: the plan that a command runs under."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from peaksight.cli.complaints import complain
from peaksight.errors import PlanError
from peaksight.records import ScriptCommand
from peaksight.records.plan import Plan
from peaksight.records.plan_file import check_script, read_plan

PLAN_FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)


def plan_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the option `--plan`."""
    return click.option("--plan", type=PLAN_FILE, metavar="FILE", help="Apply the plan that `fix --apply` wrote.")(
        command
    )


def under_plan(command: ScriptCommand, path: Path | None) -> tuple[ScriptCommand, Plan | None]:
    """`command` with the arguments of the plan in `path`, and that plan.

    Raises:
        PlanError: the file is no plan, or not one of this script.
    """
    if path is None:
        return command, None
    plan = read_plan(path)
    check_script(plan, command.target)
    return (command if plan.arguments is None else replace(command, args=plan.arguments)), plan


@contextmanager
def applied(plan: Plan | None) -> Iterator[None]:
    """Make the changes of `plan`, if there is one, around a real run; say at its end which of them did nothing."""
    if plan is None:
        yield
        return
    if any(change.kind.startswith("jax-") for change in plan.changes):
        raise PlanError(
            "Can't apply the plan to a real run: it is for a script under JAX, whose plans are simulated only. Make "
            "its changes in the script; `peaksight fix` says where.",
            slug="jax-plan",
        )
    from peaksight.overlays.apply import apply_changes
    from peaksight.overlays.patches import Patches

    with Patches() as patches:
        changes = apply_changes(plan.changes, patches)
        try:
            yield
        finally:
            for kind in changes.without_effect():
                complain(f"of the plan, {kind} changed nothing in this run.")
