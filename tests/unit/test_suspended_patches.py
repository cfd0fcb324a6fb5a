"""Patches that are suspended for a while, or withdrawn for good."""

from types import SimpleNamespace

from peaksight.overlays.patches import Patches


class Greeter:
    """Says what it was made to say."""

    def greet(self):
        """A greeting."""
        return "at first"


def test_suspended_attributes_are_what_they_were_at_first():
    """Of one that was replaced twice it is the first, and after the context the last; what is not chosen stays."""
    settings = SimpleNamespace(size=1)
    with Patches() as patches:
        patches.set(Greeter, "greet", lambda self: "once")
        patches.set(Greeter, "greet", lambda self: "twice")
        patches.set(settings, "size", 2)
        with patches.suspended(lambda owner, name: owner is Greeter):
            assert ("at first", 2) == (Greeter().greet(), settings.size)
        assert "twice" == Greeter().greet()
    assert ("at first", 1) == (Greeter().greet(), settings.size)


def test_withdrawn_attributes_stay_what_they_were_at_first():
    """Also one that was not there before, which the end does not miss."""
    with Patches() as patches:
        patches.set(Greeter, "greet", lambda self: "once")
        patches.set(Greeter, "__setattr__", lambda self, name, value: None)
        patches.withdraw(lambda owner, name: owner is Greeter)
        assert "at first" == Greeter().greet()
        assert "__setattr__" not in vars(Greeter)
    assert "at first" == Greeter().greet()
