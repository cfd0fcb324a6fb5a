"""A copy of the part that is kept, in place of a view that keeps the whole."""

from collections.abc import Iterator

from peaksight.diagnosis.earlier_steps import Holder, holders_of
from peaksight.diagnosis.evidence import Evidence
from peaksight.diagnosis.rules.detach_shares_storage import kept_by_views
from peaksight.planning.edit_candidates import edit_candidate
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.planning.statements import statements_of
from peaksight.planning.stores import store_of
from peaksight.records.findings import Effect
from peaksight.records.source_edit import SourceEdit


def _propose(situation: Situation) -> Iterator[Proposal]:
    if not any(each.rule == "detach-shares-storage" for each in situation.report.findings or ()):
        return
    evidence = Evidence(situation.capture)
    holders = [each for each in holders_of(evidence, kept_by_views(evidence)) if not each.by_graph]
    edits = [_edit_of(situation, holder) for holder in holders]
    found = tuple(dict.fromkeys(edit for edit in edits if edit is not None))
    if found:
        caution = "what is written into the whole tensor afterwards is not in the copy"
        yield edit_candidate(FIX, "clone()", found, cautions=(caution,))
    else:
        names = ", ".join(f"`{each.name}` in {each.where}" for each in holders) or "them"
        why = f"the one statement that keeps {names} was not found"
        yield FIX.not_applied(why, "`.clone()` on the slice")


def _edit_of(situation: Situation, holder: Holder) -> SourceEdit | None:
    statements = statements_of(situation, holder.where.rpartition(":")[0])
    store = store_of(statements, holder.where, holder.name) if statements else None
    return statements.called_on(store.statement, store.value, ".clone()") if statements and store else None


FIX = FixKind(
    slug="clone-views",
    title="copies of the parts that are kept",
    effect=Effect.BITWISE,
    text=(
        "A slice, detached or not, keeps the whole storage that it shows a part of. The statement that keeps it "
        "(`tokens.append(hidden[:, 0].detach())`) gets `.clone()` on it. The same numbers, where nothing writes into "
        "the whole tensor later on."
    ),
    propose=_propose,
)
