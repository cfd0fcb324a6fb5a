"""Logits of labelled positions only: the same loss and gradients, of models of transformers as they are trained."""

import pytest
import torch

from peaksight.overlays.apply import apply_changes
from peaksight.overlays.patches import Patches
from peaksight.records.plan import Change

transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.torch, pytest.mark.models]

_CHANGES = (Change(kind="labelled-positions"),)


def llama(**options):
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, num_attention_heads=2, **options)).double()


def gpt2():
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=61, n_positions=16, n_embd=16, n_layer=1, n_head=2)
    return transformers.GPT2LMHeadModel(config).double()


def adapted():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    return peft.get_peft_model(llama(), config)


def batch(num_labelled=5):
    ids = torch.arange(24).view(2, 12)
    labels = torch.full_like(ids, -100)
    labels[0, -num_labelled:] = ids[0, -num_labelled:]
    labels[1, 0] = 3  # nothing comes before it: no position is to say it
    return {"input_ids": ids, "labels": labels}


def trained(make, *, changes=(), dropout=0.0, **inputs):
    """The loss, each gradient, the output, and the rows of logits that the head made."""
    rows = []
    with Patches() as patches:
        applied = apply_changes(changes, patches)
        model = make()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
        head = model.get_output_embeddings()
        head.register_forward_hook(lambda _, args, result: rows.append(result[..., 0].numel()))
        output = model(**inputs)
        output[0].backward()
    gradients = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return output, gradients, rows, not applied.without_effect()


@pytest.mark.parametrize("make", [llama, gpt2, adapted])
@pytest.mark.parametrize("options", [{}, {"num_items_in_batch": 7}])
def test_the_same_loss_and_gradients(make, options):
    """GIVEN five of 24 positions have a label, THEN there are logits of five."""
    expected, gradients, _, _ = trained(make, **batch(), **options)
    output, found, rows, has_effect = trained(make, changes=_CHANGES, **batch(), **options)

    assert has_effect
    assert rows == [5]
    assert output.logits is None
    torch.testing.assert_close(output.loss, expected.loss)
    torch.testing.assert_close(found, gradients)


def test_a_batch_without_labels_has_no_loss():
    """A mean of nothing is no number, as in transformers."""
    output, _, rows, _ = trained(llama, changes=_CHANGES, **batch() | {"labels": torch.full((2, 12), -100)})

    assert rows == [0]
    assert output.loss.isnan()


def own_loss():
    model = llama()
    model.loss_function = lambda logits, labels, **others: logits.mean()
    return model


@pytest.mark.parametrize("about", [{"make": own_loss}, {"return_dict": False}, {"make": lambda: llama().eval()}])
def test_what_stays_as_it_is(about):
    """Another loss, outputs without names, and an evaluation."""
    _, _, rows, has_effect = trained(changes=_CHANGES, **{"make": llama} | batch() | about)

    assert not has_effect
    assert rows == [24]


def test_without_the_plan_nothing_is_left():
    """Models made under it are as others after it."""
    with Patches() as patches:
        apply_changes(_CHANGES, patches)
        model = llama()

    assert model(**batch()).logits.shape == (2, 12, 61)
