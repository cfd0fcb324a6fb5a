"""`@pytest.mark.limit_gpu_memory`, with pytester."""

from types import SimpleNamespace

import pytest

from helpers import holder_of, report_of
from peaksight.limited_tests import Limit, check, pass_on
from peaksight.records import Category
from peaksight.reporting import report_to_json
from peaksight.units import MIB

pytest_plugins = ["pytester"]

TESTS = """
import pytest


@pytest.fixture
def model():
    import torch

    return torch.nn.Linear(4096, 4096).cuda()


def train(model, batch):
    import torch

    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(batch, 4096, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.limit_gpu_memory("500 MiB", gpu="t4")
@pytest.mark.parametrize("batch", [8, 20_000])
def test_train(model, batch):
    train(model, batch)

"""


def run(pytester, *words):
    return pytester.runpytest_subprocess("-p", "peaksight.pytest_plugin", "-p", "no:cacheprovider", *words)


@pytest.mark.torch
def test_marked_tests(pytester):
    """Within the limit, and beyond it; each parameter is a test of its own."""
    pytester.makepyfile(TESTS)
    done = run(pytester, "-v")
    text = done.stdout.str()

    done.assert_outcomes(passed=1, failed=1)
    assert "test_train[8] PASSED" in text
    assert "test_train[20000] needs 1." in text
    assert "(reserved, predicted for Tesla T4)" in text
    assert "parameter" in text
    assert "test_marked_tests.py:" in text


def test_a_test_that_fails_by_itself(request, monkeypatch):
    """GIVEN a simulation in which it fails, THEN what that printed is the failure."""
    report = report_to_json(report_of(holder_of(MIB, Category.PARAMETER), script_exit=1)).encode()
    done = SimpleNamespace(stdout=report, stderr=b"E   assert 4096 == 1")
    monkeypatch.setattr("peaksight.limited_tests.subprocess.run", lambda *args, **kwargs: done)

    with pytest.raises(pytest.fail.Exception, match="assert 4096 == 1"):
        check(request.node, SimpleNamespace(args=("8 GiB",), kwargs={}))


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("SKIPPED [1] test_a.py:3: not today\n1 skipped in 0.01s\n", pytest.skip.Exception),
        ("XFAIL test_a.py::test_a - later\n1 xfailed in 0.01s\n", pytest.xfail.Exception),
    ],
)
def test_a_test_that_skips_itself(said, outcome):
    """Is skipped, for its own reason; one that passes passes."""
    with pytest.raises(outcome, match=r"not today|later"):
        pass_on(said)
    pass_on("1 passed in 0.01s\n")


def test_unmarked_tests(pytester):
    """Run as ever: nothing of peaksight but the plugin is imported, and no torch."""
    pytester.makepyfile(
        """
        import sys

        def test_modules():
            assert not {"torch", "peaksight.library", "peaksight.reporting", "rich"} & set(sys.modules)
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_a_marker_that_makes_no_sense(pytester):
    """Says what it takes."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.limit_gpu_memory("8 apples")
        def test_nothing():
            pass
        """
    )
    done = run(pytester)

    done.assert_outcomes(failed=1)
    assert "limit_gpu_memory: not a size: '8 apples'" in done.stdout.str()


def test_a_card_that_nobody_knows(pytester):
    """The sentence of `peaksight run` is the failure."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.limit_gpu_memory("8 GiB", gpu="abacus")
        def test_nothing():
            pass
        """
    )
    done = run(pytester)

    done.assert_outcomes(failed=1)
    assert "Unknown GPU 'abacus'" in done.stdout.str()


def test_the_marker_is_documented(pytester):
    """`pytest --markers` has it."""
    assert "limit_gpu_memory(size, gpu='h100-80gb'" in run(pytester, "--markers").stdout.str()


def test_what_a_marker_leaves_out_is_as_in_the_settings(tmp_path):
    """The card and the budget, which the marker's own arguments win over; a test makes the steps that it makes."""
    (tmp_path / "pyproject.toml").write_text('[tool.peaksight]\ngpu = "t4"\nbudget = "2 GiB"\nsteps = 3\n')

    plain = Limit.of_marker(SimpleNamespace(args=(), kwargs={}), tmp_path)
    own = Limit.of_marker(SimpleNamespace(args=("1 GiB",), kwargs={"gpu": "l4"}), tmp_path)

    assert (plain.limit_bytes, plain.options) == (2 << 30, {"gpu": "t4"})
    assert (own.limit_bytes, own.options) == (1 << 30, {"gpu": "l4"})


def test_settings_that_make_no_sense(tmp_path):
    """Are an error of usage."""
    (tmp_path / "pyproject.toml").write_text('[tool.peaksight]\ngpuu = "t4"\n')

    with pytest.raises(pytest.UsageError, match="has no key 'gpuu'"):
        Limit.of_marker(SimpleNamespace(args=("1 GiB",), kwargs={}), tmp_path)
