"""The pytest plugin: `@pytest.mark.limit_gpu_memory("8 GiB", gpu="t4")` simulates a test and limits what it needs.

The test runs once, with its fixtures, in a `peaksight run` of its own, so that neither a GPU nor torch is needed in the
process of pytest. Unmarked tests run as ever, and nothing of peaksight is imported for them.
"""

import os

import pytest

MARKER = "limit_gpu_memory"
# Set where a marked test is simulated.
INSIDE = "PEAKSIGHT_PYTEST_INSIDE"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(size, gpu='h100-80gb', of='reserved', **options): simulate the test on this GPU; it fails if it "
        "needs more than size ('8 GiB') of reserved, allocated or process memory. options are those of peaksight run.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In place of setup, call and teardown of a marked test; its fixtures are set up where it is simulated."""
    marker = item.get_closest_marker(MARKER)
    if marker is None or os.environ.get(INSIDE):
        return None
    from peaksight.limited_tests import check

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    call = pytest.CallInfo.from_call(lambda: check(item, marker), when="call")
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
