"""The group of commands, as its help lists them."""

import click


class Commands(click.Group):
    """Lists commands in the order in which they were added, and what each does without cutting it off."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The order of a person's way: run, fix, and then the others."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One row a command, wrapped."""
        shown = [(name, command) for name, command in self.commands.items() if not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.short_help or "") for name, command in shown])
