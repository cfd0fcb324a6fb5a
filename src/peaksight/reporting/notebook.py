"""A report in a notebook: short, as text and as a table."""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from peaksight.records import Report
from peaksight.reporting import rows, sentences
from peaksight.units import format_bytes

NUM_HOLDERS = 5


def summary_to_text(report: Report, notes: tuple[str, ...] = ()) -> str:
    """The verdict, the live set by category and its largest holders, and what was not simulated."""
    held = rows.by_category(report.live_at_peak)
    places = rows.by_place(report.live_at_peak)[:NUM_HOLDERS]
    unknown = report.not_simulated
    lines = [sentences.verdict(report)]
    lines += [f"  {format_bytes(row.bytes):>11}  {row.category_words}" for row in held]
    lines += ["Largest holders:"] if places else []
    lines += [f"  {format_bytes(row.bytes):>11}  {_place(row)}" for row in places]
    lines += ["Not simulated:"] if unknown else []
    lines += [f"  {sentences.unknown_size(each):>11}  {each.what}" for each in unknown]
    return "\n".join([*notes, *lines, _footer(report)])


def summary_to_html(report: Report, notes: tuple[str, ...] = ()) -> str:
    """The same as a piece of HTML without scripts and without a style sheet, in the colours of the notebook."""
    return _template().render(
        report=report,
        notes=notes,
        verdict=sentences.verdict(report),
        held=rows.by_category(report.live_at_peak),
        places=rows.by_place(report.live_at_peak)[:NUM_HOLDERS],
        unknown=[(sentences.unknown_size(each), each.what) for each in report.not_simulated],
        footer=_footer(report),
    )


def _place(row: rows.Row) -> str:
    return "  ".join(filter(None, (row.category_words, row.module, row.source)))


def _footer(report: Report) -> str:
    return " · ".join(("predicted", *sentences.footer(report)))


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("peaksight.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["bytes"] = format_bytes
    return environment.get_template("notebook.html")
