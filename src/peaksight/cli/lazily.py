"""Commands that are imported when they are asked for: one of them need not wait for what the others import."""

from collections import UserDict
from collections.abc import Iterator
from importlib import import_module

import click


class LazyCommands(UserDict[str, click.Command]):
    """Commands by name; command `x` is `x` of the module `peaksight.cli.x`, imported at its first use."""

    def __init__(self, *names: str) -> None:
        """The commands `names`."""
        super().__init__()
        self._names = names

    def __getitem__(self, name: str) -> click.Command:
        """The command, imported now if it is not yet."""
        if name not in self.data and name in self._names:
            self.data[name] = getattr(import_module(f"peaksight.cli.{name}"), name)
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a command, without importing it."""
        return name in self._names or name in self.data

    def __iter__(self) -> Iterator[str]:
        """The names, without importing anything."""
        return iter(dict.fromkeys((*self._names, *self.data)))

    def __len__(self) -> int:
        """How many there are."""
        return len(list(iter(self)))
