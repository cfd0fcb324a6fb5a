"""The rules: one function a cause. Each reads records only and yields nothing where they do not say enough."""

from peaksight.diagnosis.logs.case import Rule
from peaksight.diagnosis.logs.causes import capacity, graphs, host, libraries, pieces, tables, tensors, words, xla

RULES: tuple[Rule, ...] = (
    *capacity.RULES,
    *pieces.RULES,
    *tensors.RULES,
    *libraries.RULES,
    *host.RULES,
    *xla.RULES,
    *tables.RULES,
    *graphs.RULES,
    words.words,
)

__all__ = ["RULES"]
