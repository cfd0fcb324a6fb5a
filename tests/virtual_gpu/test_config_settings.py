"""GIVEN a setting of a configuration of transformers, THEN it is known whether the object that was set is read."""

import pytest
import torch

from .cards import h100

pytestmark = [pytest.mark.torch, pytest.mark.models]


def settings_of(make, change):
    """The facts after one forward of the model that `make(transformers)` gives, with `change(model)` before it."""
    with h100() as gpu:
        import transformers

        model = make(transformers).cuda()
        change(model)
        ids = torch.ones(1, 4, dtype=torch.int64, device="cuda")
        model(input_ids=ids, labels=ids)
    return gpu.witness.settings.facts


def t5(transformers):
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    config = transformers.T5Config(vocab_size=16, decoder_start_token_id=0, **sizes)
    return transformers.T5ForConditionalGeneration(config)


def gpt2(transformers):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=16))


def without_cache(model):
    model.config.use_cache = False


def test_the_decoder_of_t5_reads_a_copy():
    (fact,) = settings_of(t5, without_cache)
    assert (fact.kind, fact.value, fact.num_reached) == ("use_cache", "False", 0)
    assert fact.detail == "T5ForConditionalGeneration.decoder reads True from a configuration of its own"
    assert "test_config_settings.py:" in fact.at


def test_a_shared_configuration_is_read_where_it_was_set():
    (fact,) = settings_of(gpt2, without_cache)
    assert fact.num_reached > 0
    assert fact.detail == ""


def test_what_a_model_is_made_with_is_no_setting():
    assert settings_of(gpt2, lambda model: None) == ()
