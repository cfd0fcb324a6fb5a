"""One grammar for each family of messages about memory."""

from peaksight.postmortem.dialects import accelerators, frameworks, host, libraries, tables, torch, xla
from peaksight.postmortem.grammar import Dialect

# In order of preference: where two begin at one place, the first is taken.
DIALECTS: tuple[Dialect, ...] = (
    *torch.DIALECTS,
    *accelerators.DIALECTS,
    *xla.DIALECTS,
    *frameworks.DIALECTS,
    *libraries.DIALECTS,
    *host.DIALECTS,
    *tables.DIALECTS,
)

__all__ = ["DIALECTS"]
