"""`generate()` in an evaluation runs to the longest that was asked for."""

import pytest
import torch

from .cards import slugs

pytestmark = [pytest.mark.torch, pytest.mark.models]

PROMPT, NEW, VOCABULARY = 5, 7, 100
KINDS = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 5},
    "beams": {"num_beams": 3},
    "early beams": {"num_beams": 3, "early_stopping": True},
    "no cache": {"use_cache": False},
    "any length": {"eos_token_id": None},
    "no end": {"stop_strings": None, "eos_token_id": [0, 1, 2]},
}


def small_model():
    """Two layers that know 100 words, the first of which ends a sequence."""
    from transformers import GPT2Config, GPT2LMHeadModel

    shape = {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 32}
    words = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 0, "pad_token_id": 2}
    return GPT2LMHeadModel(GPT2Config(**shape, **words)).eval()


def generate(model, device, options):
    """The sequences, and how many words the cache holds at the end."""
    prompt = torch.full((2, PROMPT), 3, device=device)
    options = {"max_new_tokens": NEW, "return_dict_in_generate": True} | options
    return model.to(device).generate(prompt, **options)


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
def test_as_many_tokens_as_it_may(virtual_gpu, options):
    """Every kind ends, after `max_new_tokens` forwards, the cache as long as that of a run whose model never ends."""
    model, calls = small_model(), []
    model.register_forward_hook(lambda *args: calls.append(None))
    generated = generate(model, "cuda", options)

    assert NEW == len(calls)
    if options.get("use_cache", True):
        assert PROMPT + NEW - 1 == generated.past_key_values.get_seq_length()
    assert (2, PROMPT + NEW) == tuple(generated.sequences.shape)
    assert "tokens" in slugs(virtual_gpu)


def test_nothing_ends_the_sequences_that_come_out(virtual_gpu):
    """They are the prompt and ordinary words, which a mask of what follows the first end keeps."""
    sequences = generate(small_model(), "cuda", {"num_return_sequences": 2, "do_sample": True}).sequences
    is_end = torch.isin(sequences, torch.tensor([0, 2], device="cuda"))
    kept = torch.cumsum(is_end, dim=1) == 0

    assert 4 * [[3] * PROMPT] == sequences[:, :PROMPT].tolist()
    assert [PROMPT + NEW] * 4 == [len(ids[mask]) for ids, mask in zip(sequences.cpu(), kept.cpu(), strict=True)]
    assert "shapes" not in slugs(virtual_gpu)


def test_the_persons_own_criteria(virtual_gpu):
    """A criterion on values that nobody knows does not end it either, one on lengths does."""
    from transformers import StoppingCriteria, StoppingCriteriaList

    class Repeated(StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            return input_ids[:, -1] == input_ids[:, -2]

    class Short(StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            return torch.full((2,), input_ids.shape[1] >= PROMPT + 3, device=input_ids.device)

    for criteria, num_tokens in (([Repeated()], NEW), ([Short()], 3)):
        options = {"stopping_criteria": StoppingCriteriaList(criteria), "eos_token_id": None}
        assert (2, PROMPT + num_tokens) == tuple(generate(small_model(), "cuda", options).sequences.shape)
