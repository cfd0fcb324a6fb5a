"""Which cells a piece of code needs."""

import pytest

from peaksight.errors import UsageError
from peaksight.notebooks.cells import Cell, choose
from peaksight.notebooks.names import Names

NOTEBOOK = [
    "import torch",
    "class Net(torch.nn.Module):\n    def __init__(self):\n        self.layer = torch.nn.Linear(WIDTH, WIDTH)",
    "WIDTH = 8",
    "model = Net()",
    "model.half()",
    "for p in model.parameters():\n    print(p)",
    "model = torch.nn.DataParallel(model)",
    "def step():\n    model(batch()).sum().backward()",
    "def batch():\n    return torch.ones(WIDTH)",
    "other = 3",
]


def cells_of(*texts):
    return [Cell(number=number, text=text) for number, text in enumerate(texts, start=1)]


def numbers(chosen):
    return [cell.number for cell in chosen.before]


def test_what_is_needed():
    """Definitions of names, of what these use at once before them, and of what functions use anywhere."""
    chosen = choose(cells_of(*NOTEBOOK), "step()")

    assert numbers(chosen) == [1, 2, 3, 4, 7, 8, 9]
    assert chosen.left_out == (5, 6)
    assert chosen.unknown == ()


def test_the_last_definition_counts():
    """And an earlier one only where the last one uses it."""
    cells = cells_of("x = 1", "y = x", "x = 2", "x += y")

    assert numbers(choose(cells, "print(x)")) == [1, 2, 3, 4]
    assert numbers(choose(cells[:3], "print(x)")) == [3]


def test_other_choices():
    """All, none, or some; what is missing then is unknown."""
    cells = cells_of("x = 1", "y = x", "z = 3")

    assert numbers(choose(cells, "y", "all")) == [1, 2, 3]
    assert choose(cells, "y", "none").unknown == ("y",)
    assert numbers(choose(cells, "y", "1,2")) == [1, 2]
    with pytest.raises(UsageError, match="no cells '1,7'"):
        choose(cells, "y", "1,7")


def test_a_star_may_define_anything():
    """A cell that imports one always runs, and nothing is unknown then."""
    chosen = choose(cells_of("from torch.nn import *", "y = 1"), "Linear(y, width)")

    assert (numbers(chosen), chosen.unknown) == ([1, 2], ())


@pytest.mark.parametrize(
    "text, defined, used",
    [
        ("x = x + 1", {"x"}, {"x"}),
        ("x += 1", {"x"}, {"x"}),
        ("for i in xs:\n    print(i, y)\nz = i", {"i", "z"}, {"xs", "y"}),
        ("with open(p) as f:\n    t = f.read()", {"f", "t"}, {"p"}),
        ("try:\n    a = b\nexcept Error as e:\n    print(e)", {"a", "e"}, {"b", "Error"}),
        ("total = sum(k for k in bar)", {"total"}, {"bar"}),
        ("def f(a, b=c):\n    d = a\n    return d + g", {"f"}, {"c", "g"}),
        (
            "@decorator\nclass A(B):\n    x = y\n    def m(self):\n        return A, z",
            {"A"},
            {"decorator", "B", "y", "z"},
        ),
        ("import a.b\nfrom c import d as e", {"a", "e"}, set()),
        ("if (n := size()) > 3:\n    m = n", {"n", "m"}, {"size"}),
        ("f = lambda q: q + r", {"f"}, {"r"}),
        ("a.b = c[d]", set(), {"a", "c", "d"}),
        ("no python at all", set(), set()),
    ],
)
def test_names(text, defined, used):
    """Builtins are nobody's."""
    names = Names.of(text)

    assert (names.defined, names.used) == (defined, used)
