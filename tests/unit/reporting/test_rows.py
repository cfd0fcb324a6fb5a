"""Fewer rows for a person."""

from helpers import holder_of
from peaksight.records import Category
from peaksight.reporting.rows import by_category, by_place, fold_layers
from peaksight.units import MIB

MLP = {"category": Category.ACTIVATION, "source": "train.py:88"}


def test_layer_numbers_fold():
    """Numbers between dots and at the end are layers; digits within a name are not."""
    assert fold_layers("GPT2.h.11.mlp") == "GPT2.h.*.mlp"
    assert fold_layers("Net.blocks.3") == "Net.blocks.*"
    assert fold_layers("ResNet.conv1") == "ResNet.conv1"
    assert fold_layers("") == ""


def test_repeated_layers_are_one_row():
    """Twelve layers on one line add up; another line is another row."""
    holders = [holder_of(2 * MIB, module=f"GPT2.h.{layer}.mlp", count=3, **MLP) for layer in range(12)]
    first, second = by_place([*holders, holder_of(MIB, Category.ACTIVATION, module="GPT2.h.0.mlp")])

    assert (first.module, first.bytes, first.count) == ("GPT2.h.*.mlp", 24 * MIB, 36)
    assert second.source == "train.py:1"


def test_categories_are_largest_first_and_lose_nothing():
    """Bytes and blocks of the rows are those of the holders."""
    holders = [
        holder_of(MIB, Category.INPUT),
        holder_of(4 * MIB, Category.PARAMETER, count=2),
        holder_of(8 * MIB, Category.PARAMETER),
    ]
    rows = by_category(holders)

    assert [(row.category, row.bytes, row.count) for row in rows] == [
        (Category.PARAMETER, 12 * MIB, 3),
        (Category.INPUT, MIB, 1),
    ]
