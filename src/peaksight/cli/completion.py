"""Completion of words in a shell: the command that prints what a shell needs for it, and what is completed."""

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
_PROGRAM, _VARIABLE = "peaksight", "_PEAKSIGHT_COMPLETE"


@click.command(short_help="Print what completes words after peaksight in a shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what SHELL reads to complete commands, options, cards, rules and files after `peaksight`.

    \b
    in ~/.bashrc    eval "$(peaksight completion bash)"
    in ~/.zshrc     eval "$(peaksight completion zsh)"
    in config.fish  peaksight completion fish | source
    """
    of_shell = get_completion_class(shell)
    assert of_shell is not None
    click.echo(of_shell(context.find_root().command, {}, _PROGRAM, _VARIABLE).source())


def cards(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that `--gpu` takes; slices once one has begun to be typed, for there are many."""
    from peaksight.gpus import known_cards, known_slices

    known = known_slices() if ":" in incomplete else known_cards()
    return [CompletionItem(card.name, help=card.product_name) for card in known if card.name.startswith(incomplete)]


def rules(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names that `explain` takes."""
    from peaksight.diagnosis.catalog import every_rule, title_of
    from peaksight.planning.texts import fix_titles

    titles = {slug: title_of(slug) for slug in every_rule()} | fix_titles()
    return [CompletionItem(slug, help=title) for slug, title in titles.items() if slug.startswith(incomplete)]


def files(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The script, and what follows it: the shell knows its files."""
    return [CompletionItem(incomplete, type="file")]
