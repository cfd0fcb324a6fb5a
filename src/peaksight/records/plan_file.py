"""The plan file: JSON that `fix --apply` writes and `--plan` reads."""

import hashlib
from pathlib import Path

import msgspec

from peaksight.errors import PlanError
from peaksight.records.plan import PLAN_SCHEMA, Plan

_AGAIN = "Make it again with `peaksight fix --apply`."


def write_plan(path: Path, plan: Plan) -> None:
    """Write `plan`, indented for people.

    Raises:
        OSError: the file cannot be written.
    """
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n")


def read_plan(path: Path) -> Plan:
    """The plan in `path`.

    Raises:
        PlanError: it cannot be read, is no plan, or one of another release's schema.
    """
    try:
        content = path.read_bytes()
        schema = msgspec.json.decode(content, type=_Head).schema
        if schema != PLAN_SCHEMA:
            raise PlanError(f"Can't read {path}: its schema is {schema!r}, not {PLAN_SCHEMA!r}. {_AGAIN}", slug="plan")
        return msgspec.json.decode(content, type=Plan)
    except OSError as error:
        raise PlanError(f"Can't read {path}: {error.strerror}. Give the file of a plan.", slug="plan") from error
    except msgspec.MsgspecError as error:
        raise PlanError(f"Can't read {path}: it is no plan ({error}). {_AGAIN}", slug="plan") from error


class _Head(msgspec.Struct):
    """What every plan has."""

    schema: str


def digest_of_script(path: str) -> str:
    """By which a plan knows the script at `path`; empty for what is no file, as a module."""
    file = Path(path)
    return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest() if file.is_file() else ""


def check_script(plan: Plan, target: str) -> None:
    """Check that `plan` was made for the script or module `target` as it is now.

    Raises:
        PlanError: it was made for another one, or the script has changed since.
    """
    made_for = next((word for word in plan.argv if word != "-m"), "")
    if Path(made_for).name != Path(target).name:
        raise PlanError(f"The plan is for {made_for}, not for {target}: its changes may do harm there. {_AGAIN}",
                        slug="plan-script")  # fmt: skip
    if plan.sources and plan.sources != digest_of_script(target):
        raise PlanError(f"{target} has changed since the plan was made: what it expects is no longer so. {_AGAIN}",
                        slug="plan-script")  # fmt: skip
