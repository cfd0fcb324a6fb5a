"""What is taken of the cells that ran."""

from types import SimpleNamespace

from peaksight.notebooks.cells import Cell
from peaksight.notebooks.history import executed_cells


def cells_in(*texts, failed=(), line=0):
    history = SimpleNamespace(input_hist_parsed=["", *texts], exceptions=dict.fromkeys(failed))
    return executed_cells(SimpleNamespace(history_manager=history), line)


def test_magics_failures_and_predictions_are_left_out():
    """Lines keep their numbers within a cell; what uses a prediction goes with it."""
    cells = cells_in(
        "get_ipython().run_line_magic('load_ext', 'peaksight')\nimport torch",
        "1 / 0",
        "get_ipython().run_cell_magic('peaksight', '', 'x')",
        "x = 1\np = peaksight.peak(f)\nbest = p.peak_bytes\nprint(best)\ny = x",
        "now()",
        failed=[2],
    )

    assert cells == [Cell(number=1, text="import torch"), Cell(number=4, text="x = 1\n\n\n\ny = x")]


def test_of_the_cell_that_runs_now_what_is_above():
    """With decorators; a statement that ends below is none of it."""
    text = "@decorated\ndef f():\n    pass\nx = 1\npeaksight.peak(\n    f,\n)\ny = 2"

    assert cells_in(text, line=5) == [Cell(number=1, text="@decorated\ndef f():\n    pass\nx = 1")]
    assert cells_in(text) == []


def test_elsewhere_than_in_ipython():
    """There are none."""
    assert executed_cells() == []
