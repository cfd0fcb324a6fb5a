"""`peaksight explain`: what a rule or a fix means."""

from difflib import get_close_matches
from functools import partial

import click
from rich.console import Console
from rich.table import Table

from peaksight.cli.completion import rules
from peaksight.cli.output import Output
from peaksight.diagnosis.catalog import all_texts, every_rule, text_of, title_of
from peaksight.diagnosis.kinds import RULE_OF_KIND
from peaksight.errors import UsageError
from peaksight.planning.texts import all_fix_texts, fix_titles, text_of_fix

_WIDTH = 100
_ALL_FIXES = "fixes"


@click.command(short_help="Explain a rule under Why, or a fix; list them.")
@click.option("--markdown", is_flag=True, help="Print Markdown as it is, of all rules where none is named.")
@click.argument("rule", required=False, shell_complete=rules)
def explain(rule: str | None, markdown: bool) -> None:
    """Explain RULE: what it finds, why that costs memory, an example, fixes, known misses; without it list all rules.

    Rules are what `peaksight run` names under *Why*; a cause that `peaksight read` names leads to the rule on it. RULE
    may be a fix that `peaksight fix` tries, too; `fixes` explains all of those.
    """
    if markdown:
        click.echo(_text(rule) if rule else all_texts())
    elif rule:
        Output().draw(partial(_print, _text(rule)))
    else:
        Output().draw(_print_list)


def _print(text: str, console: Console) -> None:
    """`text` as Markdown, for which rich imports much."""
    from rich.markdown import Markdown

    console.print(Markdown(text), width=min(console.width, _WIDTH))


def _print_list(console: Console) -> None:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(no_wrap=True)
    for slug in every_rule():
        table.add_row(slug, title_of(slug))
    table.add_row()
    for slug, title in fix_titles().items():
        table.add_row(slug, f"fix: {title}")
    console.print(table)


def _text(rule: str) -> str:
    if rule == _ALL_FIXES:
        return all_fix_texts()
    if rule in fix_titles():
        return text_of_fix(rule)
    try:
        return text_of(RULE_OF_KIND.get(rule, rule))
    except KeyError:
        near = get_close_matches(rule, [*every_rule(), *fix_titles()])
        meant = f"did you mean {near[0]}?" if near else "`peaksight explain` lists them."
        raise UsageError(f"There is no rule '{rule}': {meant}", slug="no-such-rule") from None
