"""The page of `peaksight read` for a device memory profile of JAX."""

from collections import defaultdict
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from peaksight.records.device_profile import DeviceProfile, ProfileHolder
from peaksight.reporting.wrapping import MAX_WIDTH, print_sentence
from peaksight.units import format_bytes

NUM_LINES = 12
CANNOT_TELL = (
    "Temporaries of a running program: a profile shows what is alive between programs, arrays and executables.",
    "What held the memory at another time: it is one moment, that of the call.",
)


def render_device_profile(profile: DeviceProfile, console: Console) -> None:
    """Print `profile` on `console`."""
    print_sentence(console, happened(profile), "bold")
    for title, table in (("By device and kind", _totals(profile)), ("By line", _lines(profile))):
        console.print()
        console.print(Text(title, style="bold"))
        console.print(table, width=min(console.width, MAX_WIDTH))
    console.print()
    console.print(Text("What the profile cannot tell", style="bold"))
    for sentence in CANNOT_TELL:
        print_sentence(console, f" - {sentence}")


def happened(profile: DeviceProfile) -> str:
    """What was alive, in one sentence."""
    if not profile.holders:
        return "Nothing was alive on the devices."
    largest = max(_by_line(profile.holders), key=lambda row: row[1])
    share = 100 * largest[1] / profile.live_bytes
    return f"{format_bytes(profile.live_bytes)} were alive, {share:.0f} % of it made at {largest[0]}."


def _totals(profile: DeviceProfile) -> Table:
    table = _table()
    for total in profile.totals:
        table.add_row(format_bytes(total.bytes), f"{total.count} {total.kind or 'other'}s", total.device or "")
    return table


def _lines(profile: DeviceProfile) -> Table:
    table = _table()
    rows = sorted(_by_line(profile.holders), key=lambda row: (-row[1], row[0]))
    for source, size, count, inside in rows[:NUM_LINES]:
        table.add_row(format_bytes(size), source, f"{count} in {inside}" if inside else str(count))
    if rest := rows[NUM_LINES:]:
        table.add_row(format_bytes(sum(row[1] for row in rest)), f"{len(rest)} other lines", "")
    return table


def _by_line(holders: Iterable[ProfileHolder]) -> list[tuple[str, int, int, str]]:
    """Line, bytes, number and innermost function of the largest, for each line."""
    groups: dict[str, list[ProfileHolder]] = defaultdict(list)
    for holder in holders:
        groups[holder.source or _without_line(holder)].append(holder)
    return [
        (source, sum(h.bytes for h in group), sum(h.count for h in group), _innermost(group))
        for source, group in groups.items()
    ]


def _without_line(holder: ProfileHolder) -> str:
    return "a compiled program" if holder.kind == "executable" else "no line of the user's code"


def _innermost(group: list[ProfileHolder]) -> str:
    largest = max(group, key=lambda holder: holder.bytes)
    return largest.stack[0].partition(" at ")[0] if largest.stack else ""


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    return table
