"""What to run: the person's command, as typed after `peaksight run`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCommand:
    """A script file (`train.py`) or, with `is_module`, a module (`pkg.train`), and the arguments it gets.

    `environment` are the variables that `env` or a launcher sets for it, None for one that is unset. `processes` is
    how many of it a launcher was asked to start, for each card of a machine where they are `per_card`.
    """

    target: str
    args: tuple[str, ...] = ()
    is_module: bool = False
    environment: tuple[tuple[str, str | None], ...] = ()
    processes: int = 1
    per_card: bool = False

    @property
    def argv(self) -> tuple[str, ...]:
        """The command as reports print it."""
        return (("-m",) if self.is_module else ()) + (self.target, *self.args)
