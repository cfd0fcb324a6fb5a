"""Parameters, gradients and state of the optimizer over several cards: simulated for 2, 4 and 8, never chosen."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from peaksight.diagnosis.module_blocks import block_of
from peaksight.planning.decomposition import hazards_of, hazards_of_scaling, worst_hazard
from peaksight.planning.kind import FixKind, Proposal
from peaksight.planning.loops import loading_of
from peaksight.planning.script_text import ScriptText, text_of_script
from peaksight.planning.situation import Situation
from peaksight.records.findings import Effect

_RANKS = (2, 4, 8)
# Of the peak, what parameters, gradients and state have to be.
_MIN_SHARE = 0.02
_RANKED = re.compile(r"distributed|^fully_shard$|trainingarguments$|local_rank|world_size")
_BY_HAND = (
    "`fully_shard` for each block and for the model, before the optimizer is made, and a batch divided by the ranks; "
    "`peaksight run --ranks 2` simulates it then"
)


def _propose(situation: Situation) -> Iterator[Proposal]:
    rows = situation.optimizers
    if situation.capture.world_size > 1 or not rows:
        return
    trained = sum(row.parameter_bytes for row in rows if not row.frozen)
    held = sum(row.parameter_bytes + row.state_bytes for row in rows) + trained
    if held < _MIN_SHARE * situation.capture.peak_allocated_bytes:
        return
    loading = loading_of(situation)
    sizes = [ranks for ranks in _RANKS if loading and loading.batch_size % ranks == 0]
    if _starts_as_several(text_of_script(situation)):
        yield FIX.not_applied("it has its own way to start on several cards", "`peaksight run --ranks 2` simulates it")
        return
    if loading is None or not sizes:
        why = "no DataLoader gives its batches" if loading is None else "2 does not divide its batch"
        yield FIX.not_applied(why, _BY_HAND)
        return
    hazards = hazards_of(situation) + hazards_of_scaling(situation)
    for ranks in sizes:
        candidate = FIX.candidate(
            "ranks",
            title=f"FSDP2 over {ranks} cards, batch / {ranks} on each",
            effect=worst_hazard(hazards),
            cautions=tuple(hazard.why for hazard in hazards),
            modules=_shardable(situation),
            loaders=list(loading.loaders),
        )
        yield replace(candidate, ranks=ranks)


def _starts_as_several(text: ScriptText) -> bool:
    """Whether the script or the library that its loop is of asks for its rank."""
    return text.names(_RANKED) or text.imports("accelerate", "lightning", "pytorch_lightning", "trl")


def _shardable(situation: Situation) -> list[str]:
    """The repeated blocks of each model that has parameters, and then the models."""
    paths = [fact.module for fact in situation.capture.modules if fact.module]
    blocks = dict.fromkeys(block for path in paths if (block := block_of(path)) and path != block)
    siblings = Counter(block.rpartition(".")[0] for block in blocks)
    repeated = [block for block in blocks if siblings[block.rpartition(".")[0]] > 1]
    return [*repeated, *dict.fromkeys(path.partition(".")[0] for path in paths)]


FIX = FixKind(
    slug="sharding",
    title="sharded over cards (FSDP2)",
    effect=Effect.MODEL,
    text=(
        "FSDP2's `fully_shard` gives each of N cards an Nth of parameters, gradients and the optimizer's state; the "
        "parameters of a block are gathered while it runs. Each rank reads its part of every batch, so that a step "
        "sees the samples that it saw before. The same training, rounded in another order, where the loss is a mean "
        "over samples; else what is said of parts of a batch is said of the ranks' parts. The script has to start once "
        "for each card (torchrun). It is simulated for 2, 4 and 8 cards, and shown beside the plans for one card."
    ),
    propose=_propose,
)
