"""The group of commands, as its help lists them."""

from copy import copy
from pathlib import Path

import click


class Commands(click.Group):
    """Lists commands in the order in which they were added, and what each does without cutting it off."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order of a person's way: run, fix, and then the others."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` name, with defaults from pyproject.toml, which its help tells too."""
        name, command, words = super().resolve_command(ctx, args)
        if name is None or command is None or ctx.resilient_parsing or ctx.params.get("isolated"):
            return name, command, words
        from peaksight.settings import find_settings

        if settings := find_settings(Path.cwd()):
            from peaksight.cli.configured import defaults, described

            ctx.obj, ctx.default_map = settings, {name: defaults(settings, name, self.commands)}
            command = copy(command)
            command.epilog = described(command, settings, ctx.default_map[name])
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One row a command, wrapped."""
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help or "") for name, command in shown])
