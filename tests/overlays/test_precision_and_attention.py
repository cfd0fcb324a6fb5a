"""Autocast, attention and caches changed from outside do what the script could write itself."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

pytestmark = [pytest.mark.torch, pytest.mark.models]


def gradients(model, run, *changes):
    """Those of `run(model)` under `changes`, each of which has an effect."""
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        run(model).backward()
        assert not applied.without_effect()
    return [parameter.grad for parameter in model.parameters()]


def test_autocast_is_that_of_torch():
    """Around the model and a loss that is called as a function; after it nothing is cast."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4))
    x, y = torch.randn(32, 8), torch.randint(4, (32,))

    def plain(model):
        return functional.cross_entropy(model(x), y)

    def under_autocast(model):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return plain(model)

    found = gradients(copy.deepcopy(model), plain, Change(kind="autocast"))

    assert all(torch.equal(a, b) for a, b in zip(gradients(model, under_autocast), found, strict=True))
    assert model(x).dtype == torch.float32


def llama(**options):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "vocab_size": 32}
    return LlamaForCausalLM(LlamaConfig(num_attention_heads=2, bos_token_id=0, eos_token_id=1, **sizes, **options))


def loss_of(model):
    ids = torch.arange(16).view(2, 8)
    return model(input_ids=ids, labels=ids).loss


@pytest.mark.parametrize("kind", ["fused-attention", "no-kv-cache"])
def test_settings_of_transformers(kind):
    """The same gradients up to rounding, and another setting while the plan is in force."""
    model = llama(attn_implementation="eager")
    other = copy.deepcopy(model)

    found = gradients(other, loss_of, Change(kind=kind))

    torch.testing.assert_close(found, gradients(model, loss_of))
    assert other.config._attn_implementation == ("sdpa" if kind == "fused-attention" else "eager")


def test_no_cache_is_kept():
    """Unless a call asks for it; afterwards as before."""
    model = llama()
    with Patches() as patches:
        apply_changes([Change(kind="no-kv-cache")], patches)
        ids = torch.arange(16).view(2, 8)
        assert model(input_ids=ids).past_key_values is None
        assert model(input_ids=ids, use_cache=True).past_key_values is not None
    assert model.config.use_cache
