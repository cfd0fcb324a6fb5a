"""Which line of one version is which of another."""

import hashlib

import pytest

from helpers import allocation_of, capture_of
from peaksight.attribution.line_matching import match_lines
from peaksight.records import LineMatch, SourceLine
from peaksight.units import MIB


def version(source, *numbers, name="train.py", script="train.py", known=True, others=()):
    """A run of `script` with a block from each of the lines `numbers` of the file `name`, which holds `source`."""
    lines = source.splitlines()
    places = [f"{name}:{number}" for number in numbers] + list(others)
    digest = hashlib.sha256(source.encode()).hexdigest()
    said = [SourceLine(at=f"{name}:{n}", text=lines[n - 1].strip(), file_sha256=digest) for n in numbers]
    blocks = [allocation_of(MIB, born=born, source=place) for born, place in enumerate(places, start=1)]
    return capture_of(*blocks, argv=(script,), source_lines=tuple(said) if known else ())


OLD = "x = load()\nh = encode(x)\nh = act(h)\nloss = model(h)\n"


def found(a, b):
    """The lines of B and how they were found, by those of A."""
    return {source: (match.source, match.how) for source, match in match_lines(a, b).items()}


def test_lines_of_the_same_file_keep_their_numbers():
    """Even where the runs allocate at different lines that say the same."""
    repeated = "h = act(h)\n" * 4

    assert found(version(repeated, 1, 2), version(repeated, 2, 4)) == {
        "train.py:2": ("train.py:2", LineMatch.SAME_FILE)
    }


def test_lines_that_moved_are_found_by_what_they_say():
    """GIVEN two new lines on top and one that is gone."""
    new = "import os\nimport sys\nx = load()\nh = encode(x)\nloss = model(h)\n"

    assert found(version(OLD, 1, 2, 3, 4), version(new, 3, 4, 5)) == {
        "train.py:1": ("train.py:3", LineMatch.TEXT),
        "train.py:2": ("train.py:4", LineMatch.TEXT),
        "train.py:4": ("train.py:5", LineMatch.TEXT),
    }


def test_an_edited_line_is_found_by_likeness():
    """One that says something else is not."""
    new = OLD.replace("encode(x)", "checkpoint(encode, x)").replace("act(h)", "act(h, inplace=True)")
    other = OLD.replace("h = act(h)", "print('nothing')")

    assert found(version(OLD, 1, 2, 3), version(new, 1, 2, 3)) == {
        "train.py:1": ("train.py:1", LineMatch.TEXT),
        "train.py:2": ("train.py:2", LineMatch.EDITED),
        "train.py:3": ("train.py:3", LineMatch.EDITED),
    }
    assert "train.py:3" not in found(version(OLD, 1, 3), version(other, 1, 3))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("h = h.relu()", "h = nn.functional.gelu(h) * h.sigmoid()"),
        ("self.x = make()", "self.x = torch.stack([first, second])"),
        ("labels=y,", "labels=torch.cat([one, another], dim=1),"),
        ("total += loss", "total += criterion(model(batch), target).detach()"),
    ],
)
def test_a_line_that_assigns_to_the_same_name_is_found(old, new):
    """However much of it was edited."""
    a, b = (version(f"x = load()\n{line}\nloss = model(h)\n", 1, 2, 3) for line in (old, new))

    assert found(a, b)["train.py:2"] == ("train.py:2", LineMatch.EDITED)


@pytest.mark.parametrize("new", ["assert h == act(other, 1, 2, 3)", "log(write(twice))"])
def test_a_comparison_assigns_nothing(new):
    """Nor does a call."""
    a, b = (version(f"x = load()\n{line}\nloss = model(h)\n", 1, 2, 3) for line in ("h = f(x)", new))

    assert "train.py:2" not in found(a, b)


def test_without_texts_the_number_decides():
    """As for a capture of an earlier release."""
    a, b = version(OLD, 1, 2, known=False), version(OLD, 2, 3)

    assert found(a, b) == {"train.py:2": ("train.py:2", LineMatch.NUMBER)}


def test_two_scripts_are_the_same_file_whatever_their_names():
    """Also where one uses a module that is called as the other."""
    a = version(OLD, 1, name="a.py", script="dir/a.py", others=["b.py:1"])
    b = version(OLD, 1, name="b.py", script="b.py", others=["a.py:1"])

    assert found(a, b) == {"a.py:1": ("b.py:1", LineMatch.SAME_FILE)}


def test_other_files_are_the_same_by_name_or_by_text():
    """One that was renamed and edited is another."""
    renamed = {"m.py:1": ("n.py:1", LineMatch.SAME_FILE)}

    assert found(version(OLD, 1, name="m.py"), version(OLD, 1, name="n.py")) == renamed
    assert found(version(OLD, 1, name="m.py"), version(OLD + "\n", 1, name="n.py")) == {}
    assert found(version(OLD, 1, name="m.py", known=False), version(OLD, 1, name="n.py")) == {}
    assert set(found(version(OLD, 1, name="m.py"), version(OLD + "\n", 1, name="m.py"))) == {"m.py:1"}


def test_each_line_is_found_once():
    """GIVEN two lines like one edited line, THEN it is matched with one of them."""
    a = version("h = first(h, 10)\nh = first(h, 11)\n", 1, 2)
    b = version("h = first(h, 12)\n", 1)

    assert len(found(a, b)) == 1
