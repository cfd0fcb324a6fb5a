"""`generate()` of transformers: nobody knows which tokens a model would write, so it writes as many as it may.

That is the upper bound of what the cache of keys and values grows to.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from peaksight.virtual_gpu.late_imports import change_modules
from peaksight.virtual_gpu.patches import Patches
from peaksight.virtual_gpu.tensors.values import assume, known_value

# Private methods of `GenerationMixin`.
_GO_ON, _FINISH = "_beam_search_has_unfinished_sequences", "_update_finished_beams"


def install(patches: Patches, note: Callable[[], None]) -> None:
    """Have no sequence end before `max_new_tokens` until `patches` is left; `note()` each time one might have."""

    def bound_criteria(module: ModuleType) -> None:
        criteria = module.StoppingCriteriaList
        patches.set(criteria, "__call__", _until_max_length(criteria.__call__, note))

    def bound_beams(module: ModuleType) -> None:
        mixin = module.GenerationMixin
        if hasattr(mixin, _GO_ON) and hasattr(mixin, _FINISH):
            patches.set(mixin, _GO_ON, staticmethod(_beams_go_on))
            patches.set(mixin, _FINISH, _whole_beams(getattr(mixin, _FINISH)))

    change_modules(
        patches,
        {
            "transformers.generation.stopping_criteria": bound_criteria,
            "transformers.generation.utils": bound_beams,
        },
    )


def _until_max_length(evaluate: Callable, note: Callable[[], None]) -> Callable:
    """`StoppingCriteriaList.__call__`: where it depends on the tokens, only the maximal length counts."""

    def is_done(criteria: Any, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        done = evaluate(criteria, input_ids, scores, **kwargs)
        if known_value(done) is None:
            note()
            assume(done, criteria.max_length is not None and input_ids.shape[-1] >= criteria.max_length)
        return done

    return is_done


def _beams_go_on(
    is_early_stop_heuristic_unsatisfied: torch.Tensor,
    is_sent_finished: torch.Tensor,
    next_token_hits_stopping_criteria: torch.Tensor,
    early_stopping: bool | str,
) -> torch.Tensor:
    """Some beam can be continued and might get better, until all are of the maximal length."""
    return ~torch.all(next_token_hits_stopping_criteria)


def _whole_beams(update: Callable) -> Callable:
    """`_update_finished_beams`: no finished beam has an index of -1, which stands for "ended before"."""

    def update_finished_beams(*args: Any, **kwargs: Any) -> Any:
        sequences, scores, indices, are_finished = update(*args, **kwargs)
        return sequences, scores, indices if known_value(indices) is not None else assume(indices, 0), are_finished

    return update_finished_beams
