"""Figures in prose, as in a post-mortem: found, and checked against each other by arithmetic."""

from peaksight.postmortem.claims.beliefs import check_beliefs
from peaksight.postmortem.claims.equalities import check_equalities
from peaksight.postmortem.claims.measures import check_measures
from peaksight.postmortem.claims.mentions import find_mentions
from peaksight.postmortem.claims.moments import check_moments
from peaksight.postmortem.claims.omissions import check_omissions
from peaksight.postmortem.claims.prose import is_prose, repaired
from peaksight.postmortem.claims.rates import check_rates
from peaksight.postmortem.claims.reductions import check_reductions
from peaksight.postmortem.claims.relations import check_relations
from peaksight.postmortem.claims.rows import find_rows
from peaksight.postmortem.claims.savings import check_savings
from peaksight.postmortem.claims.schedules import check_schedules
from peaksight.postmortem.claims.shapes import check_sizes
from peaksight.postmortem.claims.shares import check_shares
from peaksight.postmortem.claims.totals import check_totals
from peaksight.records import Check, Claim, Fact

MAX_CHECKS = 80


def read_claims(text: str, facts: tuple[Fact, ...]) -> tuple[tuple[Claim, ...], tuple[Check, ...]]:
    """The sizes that `text` claims, and what can be checked of them; nothing where it is a log and no prose."""
    text = repaired(text)
    if not is_prose(text):
        return (), ()
    rows = find_rows(text)
    checks = [
        *check_equalities(text),
        *check_totals(rows),
        *check_relations(text, rows, facts),
        *check_moments(text, rows),
        *check_shares(text, rows),
        *check_measures(text, rows),
        *check_omissions(text, rows, facts),
        *check_reductions(text),
        *check_savings(text, rows, facts),
        *check_rates(text),
        *check_schedules(text),
        *check_sizes(text),
        *check_beliefs(text),
    ]
    unique = {check.text: check for check in checks}
    return (*rows, *find_mentions(text, rows)), tuple(unique.values())[:MAX_CHECKS]


__all__ = ["read_claims"]
