"""Tensors of two runs are paired by name, by the end of the name, or by order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peaksight.verification.blocks import block_of
from peaksight.verification.matching import match_names, plain_name

SHAPES = st.dictionaries(st.text("ab.", min_size=1, max_size=5), st.tuples(st.integers(1, 3)), max_size=6)


@pytest.mark.parametrize(
    "path, name",
    [
        ("module._orig_mod.fc.weight", "fc.weight"),
        ("h.0._checkpoint_wrapped_module.fc.weight", "h.0.fc.weight"),
        ("encoder.module.weight", "encoder.module.weight"),
    ],
)
def test_wrappers_are_not_part_of_a_name(path, name):
    """Data parallelism, torch.compile and checkpointing each put a module around another."""
    assert name == plain_name(path)


@given(SHAPES)
def test_equal_names_match_themselves(shapes):
    """Whatever they look like."""
    match = match_names(shapes, shapes)

    assert {name: name for name in shapes} == match.names
    assert "name" == match.how


@given(SHAPES, SHAPES)
def test_nothing_is_matched_twice_or_to_another_shape(original, changed):
    """And what has no partner is named."""
    match = match_names(original, changed)

    assert len(set(match.names.values())) == len(match.names)
    assert all(changed[name] == original[other] for name, other in match.names.items())
    assert set(match.missing) == set(original) - set(match.names.values())
    assert set(match.added) == set(changed) - set(match.names)


def test_a_module_that_holds_the_model_matches_by_the_end_of_the_name():
    """As a LightningModule does."""
    match = match_names({"fc.weight": (2, 2), "fc.bias": (2,)}, {"net.fc.weight": (2, 2), "net.fc.bias": (2,)})

    assert {"net.fc.weight": "fc.weight", "net.fc.bias": "fc.bias"} == match.names
    assert "end of the name" == match.how


def test_other_names_match_by_order_if_all_shapes_do():
    """A rewritten model."""
    assert {"b": "a", "d": "c"} == match_names({"a": (1,), "c": (2,)}, {"b": (1,), "d": (2,)}).names


@pytest.mark.parametrize(
    "name, block",
    [("transformer.h.3.attn.weight", "transformer.h.3"), ("head.weight", "head"), ("0.bias", "0"), ("scale", "scale")],
)
def test_a_block_is_the_path_up_to_its_number(name, block):
    """What a person calls layer three."""
    assert block == block_of(name)
