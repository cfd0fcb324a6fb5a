"""The pages of plans, comparisons and certificates, as they stand without their scripts."""

from dataclasses import replace

import pytest

from helpers_command_pages import CERTIFICATE, PAGES, certificate_of, found
from helpers_page_numbers import json_of_page, text_of_page, unknown_numbers
from peaksight.records.findings import Effect
from peaksight.reporting.pages.certificate_page import certificate_to_html
from peaksight.reporting.pages.fix_page import fix_to_html

HOSTILE = "<script>alert('1')</script>"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_carries_what_json_prints(name):
    """Byte for byte."""
    page, json, _ = PAGES[name]

    assert json_of_page(page) == json


@pytest.mark.parametrize("name", PAGES)
def test_every_number_of_a_page_is_in_its_json(name):
    """Those that are marked as such, and sizes in sentences; head room and differences are of two of them."""
    page, _, derived = PAGES[name]

    assert set() == unknown_numbers(page, derived)


def test_a_number_that_is_not_in_the_json_is_noticed():
    """The check fails where it has to."""
    page, _, derived = PAGES["fix"]

    assert {"7.77 GiB"} == unknown_numbers(page.replace("<h1>", "<h1>7.77 GiB "), derived)
    assert {7.0} == unknown_numbers(page.replace("<h1>", '<h1><data value="7"></data>'), derived)


def test_the_page_of_a_plan():
    """The answer, before and after, the diff, and what could break it."""
    text = text_of_page(PAGES["fix"][0])

    for words in (
        "Plan: fused optimizer + checkpoint 4 of 12 blocks.",
        "the plan trains the same up to rounding",
        "500 ms",
        "+AdamW(p, fused=True)",
        "dropout stays the same",
        "What could still break it",
    ):
        assert words in text


def test_no_plan_and_no_need_of_one():
    """What came nearest; and a run that fits as it is has no before and after."""
    none = found(best=None, plan=None, parts=(), written=(), diff="", runners_up=(), next_plans=())
    fits = replace(found().original, fits=True)

    assert "The nearest to a plan" in text_of_page(fix_to_html(none))
    assert "before and after" not in text_of_page(fix_to_html(found(original=fits, best=fits)))


@pytest.mark.parametrize("effect", Effect)
def test_every_class_is_explained(effect):
    """In words beside its name."""
    best = found().best

    page = fix_to_html(found(best=replace(best, candidate=replace(best.candidate, effect=effect))))
    assert "the plan trains" in text_of_page(page) or "the plan changes what is trained" in text_of_page(page)


@pytest.mark.parametrize("verdict", ["bitwise", "rounding", "noise", "different"])
def test_the_page_of_a_certificate(verdict):
    """Its verdict, what decided it, and what was not judged."""
    text = text_of_page(certificate_to_html(certificate_of(verdict=verdict)))

    assert CERTIFICATE.reasons[0] in text
    assert "Not exercised dropout active" in text


def test_names_of_files_are_text():
    """Whatever they are."""
    page = fix_to_html(found(argv=(HOSTILE,), diff=f"+{HOSTILE}\n"))

    assert HOSTILE not in page
    assert HOSTILE in text_of_page(page)
