"""The search: every fix alone, then joins of those that help, in the order of their expected time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from peaksight.planning.combining import NOTHING, all_but_one, combinations, expected_bytes, expected_cost, joined
from peaksight.planning.judgement import judged, objection
from peaksight.records.findings import Effect
from peaksight.records.plan import STRICTNESS, is_as_strict
from peaksight.records.proposals import Candidate, Outcome, Tried

# Simulates candidates and gives their outcomes in the same order.
Simulate = Callable[[Sequence[Candidate]], Iterable[Outcome]]

# After a plan was found, as many more are looked at as run at a time, times this: the expected order is not exact.
ROUNDS_AFTER = 1
# Times that differ by no more than this are the same: so exact is no prediction, and nobody notices.
SAME_TIME = 0.02


@dataclass(kw_only=True)
class Search:
    """Looks for the fastest plan whose reserved peak stays below `limit_bytes` and that changes no more than `allowed`.

    `simulate` is handed in; `width` candidates are given to it at a time, `budget` at most in all. Where it is smaller
    than what there is to try alone, each kind of fix has its turn, and `untried` are left.
    """

    simulate: Simulate
    original: Outcome
    limit_bytes: int
    allowed: Effect
    budget: int = 40
    width: int = 2
    untried: list[Candidate] = field(default_factory=list)
    alone: list[Tried] = field(default_factory=list)
    plans: list[Tried] = field(default_factory=list)

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Try `candidates` alone, then together."""
        allowed = _in_turn([each for each in candidates if is_as_strict(each.effect, self.allowed)])
        self.untried = allowed[self.budget :]
        self.alone = list(self._try(allowed[: self.budget]))
        self.plans = [each for each in self.alone if each.fits]
        found_for = 0
        for batch in self._batches():
            tried = list(self._try(batch))
            self.plans += tried
            found_for = found_for + 1 if any(each.fits for each in self.plans) else 0
            if found_for > ROUNDS_AFTER and not self._may_be_faster(batch):
                break
        self._leave_out()

    @property
    def fitting(self) -> list[Tried]:
        """The plans that fit: first the one to take, then the others, the fastest first.

        Of those that are about as fast as the fastest, the one to take changes the training least, by the fewest parts.
        """
        ranked = sorted((each for each in self.plans if each.fits), key=_by_time)
        if not ranked:
            return []
        about = (1 + SAME_TIME) * ranked[0].outcome.cost
        best = min((each for each in ranked if each.outcome.cost <= about), key=_by_change)
        return [best, *(each for each in ranked if each is not best)]

    @property
    def nearest(self) -> Tried:
        """What came nearest to fitting, or fits with the most room."""
        everything = [*self.plans, *self.alone, judged(NOTHING, self.original, self.original, self.limit_bytes)]
        possible = (each for each in everything if not objection(each.candidate, each.outcome, self.original))
        return min(possible, key=lambda each: each.outcome.reserved_bytes)

    def _try(self, candidates: Sequence[Candidate]) -> Iterator[Tried]:
        self.budget -= len(candidates)
        for candidate, outcome in zip(candidates, self.simulate(candidates), strict=True):
            yield judged(candidate, outcome, self.original, self.limit_bytes)

    def _leave_out(self) -> None:
        """Try the best plan without each of its parts, as long as a part is found that it does without.

        Beyond the budget, as what each part does is told of the plan that is taken in any case.
        """
        alone = [each.candidate for each in self.alone]
        best = None
        while self.fitting and self.fitting[0] is not best:
            best = self.fitting[0]
            known = {each.candidate.title for each in (*self.plans, *self.alone)}
            rests = [rest for _, rest in all_but_one(best.candidate, alone) if rest.kinds and rest.title not in known]
            self.plans += self._try(rests)

    def _batches(self) -> Iterator[list[Candidate]]:
        """Joins that are expected to fit, by their time, and then the others, the smallest first."""
        useful = [each for each in self.alone if not each.outcome.error and self._helps(each)]
        joins = [parts for parts in combinations(useful) if len(parts) > 1]
        order = iter(sorted(joins, key=self._expected))
        while self.budget > 0:
            width = min(self.width, self.budget)
            batch = [joined([each.candidate for each in parts]) for parts in islice(order, width)]
            if not batch:
                return
            yield batch

    def _expected(self, parts: Sequence[Tried]) -> tuple[bool, float, int]:
        """For the order of joins: whether it is too large, then the time, or by how much."""
        size = expected_bytes(self.original, parts) - sum(each.outcome.extra_bytes for each in parts)
        is_too_large = size > self.limit_bytes
        return is_too_large, size if is_too_large else expected_cost(self.original, parts), len(parts)

    def _helps(self, tried: Tried) -> bool:
        """Whether it lowers any phase, or makes the step faster."""
        before = {each.phase: each.allocated_bytes for each in self.original.phases}
        lower = any(each.allocated_bytes < before.get(each.phase, 0) for each in tried.outcome.phases)
        has_more = tried.outcome.reserved_bytes - tried.outcome.extra_bytes < self.original.reserved_bytes
        return lower or has_more or self._is_faster(tried.outcome)

    def _is_faster(self, outcome: Outcome) -> bool:
        return bool(outcome.cost and outcome.cost < 0.99 * self.original.cost)

    def _may_be_faster(self, batch: Sequence[Candidate]) -> bool:
        """Whether the last ones were faster than the best before them."""
        best = self.fitting[:1]
        return bool(best) and best[0].candidate in batch


def _in_turn(candidates: Sequence[Candidate]) -> list[Candidate]:
    """What the person named, then the first of each kind, the second of each, and so on; else in the same order."""
    seen: Counter[tuple[str, ...]] = Counter()
    turns = []
    for candidate in candidates:
        turns.append(-1 if candidate.arguments is not None else seen[candidate.kinds])
        seen[candidate.kinds] += 1
    return [candidate for _, candidate in sorted(zip(turns, candidates, strict=True), key=lambda pair: pair[0])]


def _by_change(tried: Tried) -> tuple[int, int, float]:
    candidate = tried.candidate
    return STRICTNESS.index(candidate.effect), len(candidate.kinds), tried.outcome.cost


def _by_time(tried: Tried) -> tuple[float, int, int]:
    return tried.outcome.cost, len(tried.candidate.kinds), tried.outcome.reserved_bytes
