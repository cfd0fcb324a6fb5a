"""The answer of `fix`: the search, and what is told about its winner."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from peaksight import __version__
from peaksight.planning.absent_warnings import absent_warnings
from peaksight.planning.catalog import FIXES, JAX_FIXES
from peaksight.planning.combining import NOTHING, all_but_one
from peaksight.planning.jax_fixes import by_hand
from peaksight.planning.judgement import judged
from peaksight.planning.kind import Proposal
from peaksight.planning.risks import risks_of
from peaksight.planning.search import Search, Simulate
from peaksight.planning.situation import Situation
from peaksight.planning.writing import written
from peaksight.records.plan import Expectation, Plan, is_as_strict
from peaksight.records.plan_file import digest_of_script
from peaksight.records.proposals import Candidate, FixReport, NotApplied, Outcome, Part, Tried

_NUM_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: a `situation`, whose simulation came to `original`, and how candidates are simulated."""

    situation: Situation
    original: Outcome
    simulate: Simulate
    budget: int
    width: int


def answer(question: Question) -> FixReport:
    """Search, and tell what was found."""
    started = time.perf_counter()
    situation = question.situation
    proposals = proposals_for(situation)
    search = Search(
        simulate=question.simulate,
        original=question.original,
        limit_bytes=situation.limit_bytes,
        allowed=situation.allowed,
        budget=question.budget,
        width=question.width,
    )
    original = judged(NOTHING, question.original, question.original, situation.limit_bytes)
    candidates = [each for each in proposals if isinstance(each, Candidate)]
    if not original.fits:
        search.run([each for each in candidates if each.ranks == 1])
    fitting = [original] if original.fits else search.fitting
    best = fitting[0] if fitting else None
    by_hand, files = written(situation, best.candidate if best else NOTHING)
    return FixReport(
        argv=situation.command.argv,
        gpu=situation.room.card.name,
        torch=situation.capture.versions.device_rules,
        usable_bytes=situation.usable_bytes,
        limit_bytes=situation.limit_bytes,
        allowed=situation.allowed,
        original=original,
        best=best,
        smallest=search.nearest,
        runners_up=tuple(fitting[1 : 1 + _NUM_SHOWN]),
        next_plans=_with_more_room(fitting),
        parts=_parts(question, search, best),
        tried=(*search.alone, *(each for each in search.plans if each not in search.alone)),
        not_applied=(*_not_applied(proposals, situation), *_beyond(search.untried)),
        risks=risks_of(situation, best.outcome if best else question.original),
        plan=plan_of(question, best) if best else None,
        seconds=time.perf_counter() - started,
        written=by_hand,
        on_more_cards=() if original.fits else tuple(_on_more_cards(question, candidates)),
        diff=files.diff(),
    )


def proposals_for(situation: Situation) -> list[Proposal]:
    """What every kind of fix proposes."""
    if situation.is_under_jax:
        return [*chain.from_iterable(fix.propose(situation) for fix in JAX_FIXES), *by_hand.propose(situation)]
    return list(chain.from_iterable(fix.propose(situation) for fix in FIXES))


def _not_applied(proposals: Iterable[Proposal], situation: Situation) -> Iterator[NotApplied]:
    """What was proposed as such, and what changes more than is allowed."""
    for each in proposals:
        if isinstance(each, NotApplied):
            yield each
        elif each.ranks == 1 and not is_as_strict(each.effect, situation.allowed):
            because = f": {'; '.join(each.cautions)}" if each.cautions else ""
            yield NotApplied(
                kind=each.kinds[0],
                title=each.title,
                effect=each.effect,
                why=f"of the class {each.effect.value}{because}",
                advice=f"`--class {each.effect.value}` tries it",
            )


def _beyond(untried: Iterable[Candidate]) -> Iterator[NotApplied]:
    """What there was no time for."""
    for each in untried:
        why = "more plans were to be simulated than --candidates says"
        yield NotApplied(kind=each.kinds[0], title=each.title, effect=each.effect, why=why)


def _on_more_cards(question: Question, candidates: Sequence[Candidate]) -> Iterator[Tried]:
    """What takes several of the card, up to the fewest with which the job fits."""
    for each in sorted((each for each in candidates if each.ranks > 1), key=lambda each: each.ranks):
        (outcome,) = question.simulate([each])
        tried = judged(each, outcome, question.original, question.situation.limit_bytes)
        yield tried
        if tried.fits:
            return


def _with_more_room(fitting: Sequence[Tried]) -> tuple[Tried, ...]:
    """Of the plans that fit, for when the first proves too large: each the fastest with still more room."""
    found: list[Tried] = []
    least = fitting[0].outcome.reserved_bytes if fitting else 0
    for each in fitting[1:]:
        if each.outcome.reserved_bytes < least:
            found.append(each)
            least = each.outcome.reserved_bytes
    return tuple(found[:_NUM_SHOWN])


def _parts(question: Question, search: Search, best: Tried | None) -> tuple[Part, ...]:
    """Each fix of the best plan alone, and the plan without it: what was not tried yet is simulated."""
    alone = {each.candidate.title: each.outcome for each in search.alone}
    known = alone | {each.candidate.title: each.outcome for each in search.plans} | {NOTHING.title: question.original}
    left_out = all_but_one(best.candidate, [each.candidate for each in search.alone]) if best else []
    missing = [rest for _, rest in left_out if rest.title not in known]
    titles = [each.title for each in missing]
    known |= dict(zip(titles, question.simulate(missing), strict=True))
    return tuple(Part(title=part.title, alone=alone[part.title], left_out=known[rest.title]) for part, rest in left_out)


def plan_of(question: Question, best: Tried) -> Plan:
    """The plan file's content for `best`."""
    situation, outcome, original = question.situation, best.outcome, question.original
    allocated, reserved = outcome.steady_bytes[:2], outcome.steady_bytes[2:]
    ratio = outcome.seconds / original.seconds if outcome.seconds and original.seconds else None
    return Plan(
        argv=situation.command.argv,
        sources=digest_of_script(situation.command.target),
        peaksight=__version__,
        torch=situation.capture.versions.device_rules,
        gpu=situation.room.card.name,
        changes=best.candidate.changes,
        arguments=best.candidate.arguments,
        effect=best.candidate.effect,
        expected=Expectation(
            peak_allocated_bytes=allocated,
            peak_reserved_bytes=reserved,
            seconds=outcome.seconds,
            slow_down=ratio,
            samples=outcome.samples,
            micro_batches=outcome.passes,
            steps_per_epoch=original.steps_per_epoch if outcome.samples == original.samples else 0,
            parameters=outcome.parameters[0],
            trainable=outcome.parameters[1],
            retries=outcome.retries_at_limit or 0,
            absent_warnings=absent_warnings(best.candidate.changes),
        ),
    )
