"""Candidates that put statements of the script in other words."""

import ast
from collections.abc import Sequence
from textwrap import dedent

from peaksight.planning.kind import FixKind
from peaksight.records.plan import Change
from peaksight.records.proposals import Candidate
from peaksight.records.source_edit import SOURCE_EDIT, SourceEdit

_LONGEST, _HALF = 80, 36


def edit_candidate(fix: FixKind, title: str, edits: Sequence[SourceEdit], cautions: tuple[str, ...] = ()) -> Candidate:
    """One that makes `edits` together, of the kind `fix`; a statement has one edit in a plan."""
    return Candidate(
        kinds=(fix.slug,),
        title=f"{title} ({', '.join(edit.at for edit in edits)})",
        slots=(fix.slug, *(edit.at for edit in edits)),
        effect=fix.effect,
        changes=tuple(Change(kind=SOURCE_EDIT, parameters=edit.parameters) for edit in edits),
        cautions=cautions,
    )


def words_of(edit: SourceEdit) -> str:
    """The changed statement on one line, the middle of a long one left out."""
    lines = ast.unparse(ast.parse(dedent(edit.replacement))).splitlines()
    words = "; ".join(line.strip() for line in lines).replace(":; ", ": ")
    return f"`{words}`" if len(words) <= _LONGEST else f"`{words[:_HALF]} ... {words[-_HALF:]}`"
