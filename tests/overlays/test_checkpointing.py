"""Checkpointed layers of libraries train as they do without."""

import copy

import pytest
import torch

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = [pytest.mark.torch, pytest.mark.models]


def gpt2():
    """Of two layers, with dropout, and with a cache of keys and values as it is made by default."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=32, n_positions=16))


def checkpointed(*layers, **parameters):
    modules = [f"GPT2LMHeadModel.transformer.h.{layer}" for layer in layers]
    return Change(kind="checkpoint-modules", parameters={"modules": modules, **parameters})


def gradients(model, *changes, **arguments):
    ids = torch.arange(16).view(2, 8)
    with Patches() as patches:
        apply_changes(changes, patches)
        torch.manual_seed(1)
        model(input_ids=ids, labels=ids, **arguments).loss.backward()
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("save", [[], ["matmuls"], ["attention"]])
@pytest.mark.parametrize("layers", [(0, 1), (1,)])
def test_a_cache_is_not_added_to_twice(layers, save):
    """What a layer adds to it would be there again when it is computed again."""
    model = gpt2()
    other = copy.deepcopy(model)

    found = gradients(other, checkpointed(*layers, save=save))

    assert all(torch.equal(a, b) for a, b in zip(gradients(model), found, strict=True))


def test_a_cache_with_something_in_it():
    """As with prefix tuning: it is read, and not added to twice."""
    from transformers import DynamicCache

    model = gpt2()
    caches = [DynamicCache(config=model.config) for _ in range(2)]
    for cache in caches:
        torch.manual_seed(2)
        with torch.no_grad():
            model(input_ids=torch.zeros(2, 3, dtype=torch.long), past_key_values=cache)

    found = gradients(copy.deepcopy(model), checkpointed(0), past_key_values=caches[0])

    assert all(torch.equal(a, b) for a, b in zip(gradients(model, past_key_values=caches[1]), found, strict=True))
    assert [cache.get_seq_length(0) for cache in caches] == [3, 11]
