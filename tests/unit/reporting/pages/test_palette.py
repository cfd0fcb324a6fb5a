"""The colours of categories, as people see them who see fewer."""

from itertools import combinations

import numpy as np
import pytest

from peaksight.records import Category
from peaksight.reporting.pages.palette import COLORS

# Machado, Oliveira and Fernandes, 2009: what each kind of dichromat sees of linear RGB.
SEEN = {
    "all": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_LMS = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
TO_OKLAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]

# What fills most of a chart; the others are thin beside them. 0.02 is a difference that is just seen.
MAIN = ["PARAMETER", "OPTIMIZER_STATE", "GRADIENT", "ACTIVATION", "TEMPORARY"]
LEAST_DISTANCE = 0.06


def seen_as(color, seen):
    """`#rrggbb` in Oklab, in which distances are those that eyes see."""
    rgb = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.array(TO_OKLAB) @ np.cbrt(np.array(TO_LMS) @ np.clip(np.array(seen) @ linear, 0, 1))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", SEEN)
def test_what_fills_charts_is_told_apart(eyes, theme):
    """By everybody, in both themes."""
    lab = {name: seen_as(COLORS[Category[name]][theme], SEEN[eyes]) for name in MAIN}
    distances = {(a, b): np.linalg.norm(lab[a] - lab[b]) for a, b in combinations(MAIN, 2)}

    assert {} == {pair: distance for pair, distance in distances.items() if distance < LEAST_DISTANCE}
