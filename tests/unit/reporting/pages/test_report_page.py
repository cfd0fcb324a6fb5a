"""The page of a run, as it stands without its scripts."""

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from helpers import device_of, holder_of, oom_of, peak_of, report_of
from helpers_pages import numbers_in, report_of_training
from peaksight.records import (
    Approximation,
    Basis,
    Category,
    Effect,
    Finding,
    Fix,
    Gpu,
    NotReached,
    ScratchWrite,
    StepReport,
)
from peaksight.reporting import rows
from peaksight.reporting.json import report_to_json
from peaksight.reporting.pages.excerpts import Excerpt, ExcerptLine
from peaksight.reporting.pages.report_page import report_to_html
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
        self.is_hidden = False
        self.feed(self.source)

    @property
    def text(self):
        """The words as a person reads them, with single spaces; a place where a word may break is none."""
        return re.sub(r"\s+", " ", "".join(self.pieces))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.is_hidden = tag in ("script", "style")
        self.attributes += attrs
        self.pieces.append("" if tag in ("wbr", "code", "span") else " ")

    def handle_data(self, data):
        self.pieces.append("" if self.is_hidden else data)

    def handle_endtag(self, tag):
        self.is_hidden = False


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
        "optimizer state 3.00 GiB 37.5 % 1",
        f"total {format_bytes(REPORT.peak.allocated_bytes)} 100.0 % 14",
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


def test_twenty_holders_and_the_others():
    """What is beyond twenty is told in one row."""
    holders = [holder_of((40 - n) * MIB, Category.ACTIVATION, module=f"Model.part{n:02}") for n in range(22)]
    text = Page(report_of(*holders)).text

    assert "Model.part19" in text
    assert "Model.part20" not in text
    assert "39.00 MiB 6.0 % 2 others" in text


def test_twenty_files_and_the_others():
    """A script that writes a data set does not make a page of it."""
    writes = tuple(ScratchWrite(path=f"data/{n:02}.npy", bytes=(50 - n) * MIB) for n in range(30))
    text = Page(report_of(writes=writes)).text

    assert "31.00 MiB data/19.npy written" in text
    assert "data/20.npy" not in text
    assert "255.00 MiB 10 others" in text


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
    assert not {"table", "figure", "pre"} & set(page.tags)


def test_tags_are_closed():
    """Those that HTML wants closed are, in order."""
    source = re.sub(
        r"<(meta|wbr|p|li|input|tr|td|th|thead|tbody|!DOCTYPE)\b[^>]*>",
        "",
        re.sub(r"<(style|script)\b.*?</\1>", "", report_to_html(REPORT), flags=re.DOTALL),
    )
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
    assert "Predicted peak on cuda:1" in text
    assert '<tr><th scope="row">cuda:0' in text
    assert "<h2>Cards</h2>" not in report_to_html(REPORT)


@pytest.mark.parametrize("report", [REPORT, hostile_report(), report_of(steps=())], ids=["usual", "hostile", "empty"])
def test_nothing_but_our_scripts_runs_and_nothing_is_fetched(report):
    """No handler, no address, and as many scripts as the frame has: no name of a file is one."""
    page = Page(report)

    assert len([tag for tag in page.tags if tag == "script"]) == (3 if report.live_at_peak else 2)
    assert not {tag for tag in page.tags if tag in ("link", "img", "iframe", "object", "embed", "base", "use")}
    assert {("href", "#content")} == {pair for pair in page.attributes if pair[0] in ("href", "src", "xlink:href")}
    assert not {name for name, _ in page.attributes if name.startswith("on")}


def test_the_json_is_in_the_page_as_printed():
    """Byte for byte, for the scripts and for programs."""
    packed = re.search(r'id="data">([^<]*)<', report_to_html(REPORT))[1]

    assert report_to_json(REPORT) == gzip.decompress(base64.b64decode(packed)).decode()


def test_findings_with_their_evidence_and_their_lines():
    """What a finding is about is shown where the script could be read, with its line marked."""
    fix = Fix(kind="detach", text="Detach it.", effect=Effect.BITWISE, saves_bytes=2 * GIB)
    finding = Finding(
        rule="graph-kept",
        title="A graph is kept",
        bytes=3 * GIB,
        evidence=("3.00 GiB at train.py:88",),
        fixes=(fix,),
        basis=Basis.LIFETIME,
        at="train.py:88",
    )
    excerpt = Excerpt(at="train.py:88", lines=(ExcerptLine(number=88, text="total += loss  # <sum>", is_named=True),))
    page = report_to_html(replace(REPORT, findings=(finding, replace(finding, without_effect=True))), [excerpt])

    assert '<span class="marked"><span class="number">88</span>total += loss  # &lt;sum&gt;' in page
    assert f'saves <data value="{2 * GIB}">2.00 GiB</data>' in page
    assert "no effect" in page


def test_a_page_without_scripts_says_so():
    """Its numbers are in tables all the same."""
    text = Page(REPORT).text

    assert "5.00 GiB 5.06 GiB" in text
    assert "Alive at the peak" in text


@pytest.mark.parametrize(
    "report", [REPORT, report_of_training(), report_of_training(fails=True)], ids=lambda r: str(r.fits)
)
def test_every_number_of_bytes_is_in_the_json(report):
    """Or the sum of its rows that agree in what a table is by; and its text is what `format_bytes` says."""
    marked = re.findall(r'<data value="(\d+)">([^<]*)</data>', report_to_html(report))
    known = numbers_in(json.loads(report_to_json(report)))
    for live in (report.live_at_peak, report.oom.live if report.oom else ()):
        for table in (rows.by_category, rows.by_place, rows.by_line, rows.by_module):
            sizes = [row.bytes for row in table(live)]
            known |= {*sizes, sum(sizes[10:]), sum(sizes[20:])}

    assert len(marked) > 20
    assert set() == {int(value) for value, _ in marked} - known
    assert [] == [(value, text) for value, text in marked if text != format_bytes(int(value))]


def test_a_page_stays_small():
    """Under 1.5 MB, also where 20,000 rows are alive at the peak."""
    holders = [
        holder_of(MIB + n, Category.ACTIVATION, module=f"Model.layers.{n % 100}.mlp", source=f"train.py:{n % 300}")
        for n in range(20_000)
    ]

    assert len(report_to_html(REPORT)) < len(report_to_html(report_of(*holders))) < 1_500_000
