"""The page of a run in the frame that a notebook shows it in."""

from helpers_browser import wait
from helpers_pages import report_of_training
from peaksight.notebooks.prediction import Page
from peaksight.reporting.pages.report_page import report_to_html


def test_the_page_is_drawn_in_its_frame(browse):
    """Without errors, though the frame keeps it from the notebook around it."""
    report = report_of_training()
    shown = Page(report=report, text="", page=report_to_html(report), notes=("In[1] <b>",))
    page = browse(f"<!doctype html><html data-ready='yes'><meta charset='utf-8'><body>{shown._repr_html_()}")
    notes = page.find_element("tag name", "p").text
    page.switch_to.frame(page.find_element("tag name", "iframe"))
    wait(page, "return document.documentElement.dataset.ready")
    drawn = page.execute_script("return document.querySelectorAll('canvas, svg').length")
    reached = page.execute_script("try { return Boolean(parent.document) } catch { return false }")
    page.switch_to.default_content()

    assert [] == page.get_log("browser")
    assert notes == "In[1] <b>"
    assert drawn > 0 and not reached
