"""No cache of keys and values in training, where nothing reads it."""

from collections.abc import Iterator

from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect


def _propose(situation: Situation) -> Iterator[Proposal]:
    if any(finding.rule == "kv-cache-in-training" for finding in situation.report.findings or ()):
        yield FIX.candidate("cache", title="use_cache=False")


FIX = FixKind(
    slug="no-kv-cache",
    title="no cache of keys and values in training",
    effect=Effect.ROUNDING,
    text=(
        "Models of transformers keep the keys and values of every layer for generation, in training too, where nothing "
        "reads them. With `config.use_cache = False` they do not. Gradients may be summed in another order. A call "
        "that asks for the cache itself still gets it."
    ),
    propose=_propose,
)
