"""The report as a web page."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from helpers import device_of, holder_of, oom_of, peak_of, report_of
from peaksight.records import Approximation, Category, Gpu, NotReached, ScratchWrite, StepReport
from peaksight.reporting.html import report_to_html
from peaksight.reporting.sentences import NOT_REACHED, footer, verdict
from peaksight.units import GIB, MIB, format_bytes

HOSTILE = "<script>alert('1')</script>"
MESSAGE = "CUDA out of memory. Tried to allocate 786.00 MiB."
REPORT = report_of(
    holder_of(5 * GIB, Category.ACTIVATION, count=12, module="Model.layers.3.mlp", source="train.py:88"),
    holder_of(3 * GIB, Category.OPTIMIZER_STATE, module="Model.layers.3.mlp", source="train.py:99"),
    holder_of(MIB, Category.INPUT, source=""),
    argv=("train.py", "--batch", "8"),
    gpu=Gpu(name="Tesla T4", total_bytes=8 * GIB, usable_bytes=7 * GIB),
    fits=False,
    peak=peak_of(8 * GIB + MIB, reserved_bytes=9 * GIB, process_bytes=10 * GIB),
    oom=oom_of(
        786 * MIB,
        message=MESSAGE,
        allocated_bytes=2 * GIB,
        reserved_bytes=3 * GIB,
        live=(holder_of(2 * GIB, Category.GRADIENT, source="train.py:77"),),
    ),
    steps=tuple(StepReport(peak_allocated_bytes=n * GIB, peak_reserved_bytes=n * GIB + 64 * MIB) for n in (5, 8, 8)),
    not_simulated=(Approximation(slug="values", what="1 value was read", bytes=None),),
    not_reached_lines=(NotReached(at="train.py:214", text="if step % 100 == 0"),),
    writes=(ScratchWrite(path="out/model.pt", bytes=474 * MIB),),
)


class Page(HTMLParser):
    """The tags, attributes and visible text of a page."""

    def __init__(self, report):
        super().__init__()
        self.source = report_to_html(report)
        self.tags, self.attributes, self.pieces = [], [], []
        self.feed(self.source)

    @property
    def text(self):
        """The words as a person reads them, with single spaces; a place where a word may break is none."""
        return re.sub(r"\s+", " ", "".join(self.pieces))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.pieces.append("" if tag in ("wbr", "code", "span") else " ")

    def handle_data(self, data):
        self.pieces.append(data)


def hostile_report():
    """A report in which every text that comes from outside is a script."""
    return report_of(
        holder_of(GIB, Category.INPUT, module=HOSTILE, source=f"{HOSTILE}.py:1", op=HOSTILE),
        argv=(HOSTILE,),
        gpu=Gpu(name=HOSTILE, total_bytes=GIB, usable_bytes=GIB),
        torch=HOSTILE,
        device_rules=HOSTILE,
        peak=peak_of(GIB, reserved_bytes=GIB, at=f"{HOSTILE}.py:1"),
        oom=oom_of(GIB, message=HOSTILE, at=HOSTILE),
        not_simulated=(Approximation(slug=HOSTILE, what=HOSTILE, bytes=None),),
        not_reached_lines=(NotReached(at=HOSTILE, text=HOSTILE),),
        writes=(ScratchWrite(path=HOSTILE, bytes=1),),
    )


@pytest.mark.parametrize(
    "words",
    [
        verdict(REPORT),
        "peaksight run train.py --batch 8",
        "Every number on this page is predicted",
        "asked for 786.00 MiB at train.py:88 in the backward of step 1",
        "allocated 2.00 GiB gradient 2.00 GiB",
        MESSAGE,
        "2.00 GiB 100.0 % gradient (outside any module) train.py:77",
        "reserved 9.00 GiB what the job needs on the card",
        "process 10.00 GiB",
        "optimizer state 3.00 GiB 37.5 % 1 block",
        f"total {format_bytes(REPORT.peak.allocated_bytes)} 100.0 % 14 blocks",
        "5.00 GiB 62.5 % activation Model.layers.*.mlp train.py:88",
        "8.00 GiB 100.0 % Model.layers.*.mlp",
        "3.00 GiB 37.5 % train.py:99",
        "(outside the script)",
        "unknown 1 value was read values",
        f"{NOT_REACHED} train.py:214 if step % 100 == 0",
        "474.00 MiB out/model.pt",
        *footer(REPORT),
    ],
)
def test_the_page_says_what_the_report_holds(words):
    """Verdict, peak, failure, live set, what is unknown, what was kept from the person's files, versions."""
    assert words in Page(REPORT).text


def test_a_bar_for_each_step_and_a_line_at_what_is_usable():
    """Hovering tells the numbers; the same ones stand in a table."""
    text = Page(REPORT).text

    assert "usable 7.00 GiB" in text
    assert "step 1: allocated 5.00 GiB" in text
    assert "step 3: reserved 8.06 GiB" in text
    assert "3 8.00 GiB 8.06 GiB" in text


def test_the_line_lies_on_the_bars_in_its_place():
    """At 7 of 8.06 GiB: above the bar of 5 GiB, below the top of the others; SVG counts downwards."""
    source = report_to_html(REPORT)
    tops = [float(top) for top in re.findall(r'<rect x="[\d.]+" y="([\d.]+)" rx', source)]
    line = float(re.search(r'd="M0.0+ ([\d.]+) [^"]+" class="major guide line"', source)[1])

    assert tops[1] < line < tops[0]
    assert source.index("major guide line") > source.index("step 3: reserved")


def test_many_steps_are_shown_by_their_ends():
    """A hundred steps have forty bars, the first and the last ones, and all rows of the table."""
    text = Page(report_of(holder_of(GIB, Category.INPUT), steps=(REPORT.steps[0],) * 100)).text

    assert text.count(": reserved") == 40
    assert "step 20: reserved" in text
    assert "step 21: reserved" not in text
    assert "step 100: reserved" in text
    assert "50 5.00 GiB 5.06 GiB" in text


def test_ten_holders_and_the_others():
    """What is beyond ten is told in one row."""
    holders = [holder_of((20 - n) * MIB, Category.ACTIVATION, module=f"Model.part{n:02}") for n in range(12)]
    text = Page(report_of(*holders)).text

    assert "Model.part09" in text
    assert "Model.part10" not in text
    assert "19.00 MiB 10.9 % 2 others" in text


def test_twenty_files_and_the_others():
    """A script that writes a data set does not make a page of it."""
    writes = tuple(ScratchWrite(path=f"data/{n:02}.npy", bytes=(50 - n) * MIB) for n in range(30))
    text = Page(report_of(writes=writes)).text

    assert "31.00 MiB data/19.npy written" in text
    assert "data/20.npy" not in text
    assert "255.00 MiB 10 others" in text


@pytest.mark.parametrize("report", [REPORT, hostile_report(), report_of(steps=())], ids=["usual", "hostile", "empty"])
def test_nothing_runs_and_nothing_is_fetched(report):
    """No script, no handler, no address: neither ours nor by the name of a file."""
    page = Page(report)

    assert "script" not in page.tags
    assert not {tag for tag in page.tags if tag in ("link", "img", "iframe", "object", "embed", "base", "a", "use")}
    assert not {name for name, _ in page.attributes if name in ("href", "src", "xlink:href") or name.startswith("on")}
    assert re.findall(r"https?://[^\"]*|url\(|@import", page.source) in ([], ["http://www.w3.org/2000/svg"])


def test_a_hostile_name_is_shown_as_it_is():
    """Escaped, not left out."""
    text = Page(hostile_report()).text

    assert f"peaksight run {HOSTILE}" in text
    assert f"activation {HOSTILE}" not in text
    assert f"input {HOSTILE} {HOSTILE}.py:1" in text


def test_a_script_without_device_memory_is_one_sentence():
    """No empty tables and no chart."""
    page = Page(report_of(steps=()))

    assert "Nothing to predict" in page.text
    assert not {"table", "svg", "pre"} & set(page.tags)


def test_equal_reports_make_equal_pages():
    """Neither a time nor a random name."""
    assert report_to_html(REPORT) == report_to_html(REPORT)


@pytest.mark.parametrize("usable", [1, 7 * GIB, 8 * GIB + 64 * MIB, 190 * GIB])
def test_any_card_has_its_line(usable):
    """Also where the job takes next to nothing of it, or all of it to the byte."""
    page = Page(report_of(*REPORT.live_at_peak, gpu=Gpu(name="GPU", total_bytes=usable, usable_bytes=usable)))

    assert f"usable {format_bytes(usable)}" in page.text


def test_tags_are_closed():
    """Those that HTML wants closed are, in order."""
    source = re.sub(r"<(meta|wbr|p|tr|td|th|thead|tbody|!DOCTYPE)\b[^>]*>", "", report_to_html(REPORT))
    opened = []
    for slash, tag, closes in re.findall(r"<(/?)(\w+)[^>]*?(/?)>", source):
        if slash:
            assert opened.pop() == tag
        elif not closes:
            opened.append(tag)

    assert opened == []


def test_several_cards():
    """Each has a row."""
    cards = (device_of(0, GIB, usable_bytes=7 * GIB), device_of(1, 8 * GIB, usable_bytes=7 * GIB, fits=False))
    text = report_to_html(replace(REPORT, device=1, devices=cards))

    assert "<h2>Cards</h2>" in text
    assert "<h2>Predicted peak on cuda:1</h2>" in text
    assert "<tr><td>cuda:0" in text
    assert "<h2>Cards</h2>" not in report_to_html(REPORT)
