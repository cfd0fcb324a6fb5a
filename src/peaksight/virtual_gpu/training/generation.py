"""`generate()` of transformers: nobody knows which tokens a model would write, so it writes as many as it may.

That is the upper bound of what the cache of keys and values grows to. What comes out is the prompt and ordinary words,
so that a script that looks for the end of a sequence finds none.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.tensors.values import assume

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
        patches.set(mixin, "generate", _ordinary_words(mixin.generate, note))

    change_modules(
        patches,
        {
            "transformers.generation.stopping_criteria": bound_criteria,
            "transformers.generation.utils": bound_beams,
        },
    )


def _until_max_length(evaluate: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    """`StoppingCriteriaList.__call__`: where it depends on the tokens, only the maximal length counts."""

    def is_done(criteria: Any, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        done = evaluate(criteria, input_ids, scores, **kwargs)
        if known_value(done) is None:
            note()
            assume(done, criteria.max_length is not None and input_ids.shape[-1] >= criteria.max_length)
        return done

    return is_done


def _ordinary_words(generate: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    """`GenerationMixin.generate`: the sequences that it returns have values, of which none is a special token."""

    @functools.wraps(generate)
    def generate_words(model: Any, inputs: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> Any:
        output = generate(model, inputs, *args, **kwargs)
        sequences = getattr(output, "sequences", output)
        if isinstance(sequences, torch.Tensor) and known_value(sequences) is None:
            note()
            words = torch.full(sequences.shape, _word(model), dtype=sequences.dtype, device="cpu")
            prompt = kwargs.get("input_ids") if inputs is None else inputs
            assume(sequences, words if model.config.is_encoder_decoder else _with_prompt(words, prompt))
        return output

    return generate_words


def _word(model: Any) -> int:
    """A token from the middle of the vocabulary that is no special one."""
    settings = vars(model.config) | vars(model.generation_config)
    special = [settings.get(f"{name}_token_id") for name in ("bos", "eos", "pad", "decoder_start", "sep", "cls")]
    ids = {each for value in special for each in (value if isinstance(value, (list, tuple)) else [value])}
    middle = model.get_input_embeddings().num_embeddings // 2
    return next(word for word in range(middle, middle + len(ids) + 1) if word not in ids)


def _with_prompt(words: torch.Tensor, prompt: torch.Tensor | None) -> torch.Tensor:
    """`words` (sequences, length), which begin with `prompt` (samples, shorter length) where that is known."""
    value = None if prompt is None or prompt.dim() != words.dim() else known_value(prompt)
    if value is not None and value.shape[1] <= words.shape[1]:
        words[:, : value.shape[1]] = value.repeat_interleave(words.shape[0] // value.shape[0], 0)
    return words


def _beams_go_on(
    is_early_stop_heuristic_unsatisfied: torch.Tensor,
    is_sent_finished: torch.Tensor,
    next_token_hits_stopping_criteria: torch.Tensor,
    early_stopping: bool | str,
) -> torch.Tensor:
    """Some beam can be continued and might get better, until all are of the maximal length."""
    return ~torch.all(next_token_hits_stopping_criteria)


def _whole_beams(update: Callable[..., Any]) -> Callable[..., Any]:
    """`_update_finished_beams`: no finished beam has an index of -1, which stands for "ended before"."""

    def update_finished_beams(*args: Any, **kwargs: Any) -> Any:
        sequences, scores, indices, are_finished = update(*args, **kwargs)
        return sequences, scores, indices if known_value(indices) is not None else assume(indices, 0), are_finished

    return update_finished_beams
