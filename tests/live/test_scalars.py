"""Scalars that a script logs, by whichever library."""

from statistics import mean, variance

import pytest

from peaksight.live.scalars import Scalars, follow_scalars
from peaksight.overlays.patches import Patches
from peaksight.records.watched import WatchedStep

pytestmark = pytest.mark.torch


@pytest.fixture
def heard():
    """What is heard while the test runs."""
    calls = []
    with Patches() as patches:
        follow_scalars(patches, lambda name, value: calls.append((name, float(value))))
        yield calls


def test_tensorboard(heard, tmp_path):
    """By torch's writer."""
    writing = pytest.importorskip("torch.utils.tensorboard")
    with writing.SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_scalar(tag="accuracy", scalar_value=0.25, global_step=1)

    assert heard == [("loss", 0.5), ("accuracy", 0.25)]


def test_mlflow(heard, tmp_path, monkeypatch):
    """One metric, and several at a time."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file:{tmp_path}/runs")
    with mlflow.start_run():
        mlflow.log_metric("loss", 0.5)
        mlflow.log_metrics({"loss": 0.25, "accuracy": 1.0})
    mlflow.set_tracking_uri(before)

    assert heard == [("loss", 0.5), ("loss", 0.25), ("accuracy", 1.0)]


def test_mean_and_variance_between_events():
    """GIVEN a retry in the middle, THEN there are two spans; a name that never comes is said."""
    scalars = Scalars(["loss", "lost"])
    values = [1.0, 2.0, 4.0], [8.0, 9.0]
    step = 0
    for span in values:
        for value in span:
            step += 1
            scalars.logged("loss", value)
            scalars.logged("other", value)
            scalars.after(WatchedStep(step=step, time=0.0, seconds=0.1))
        scalars.happened("retry")
    first, second, missing = scalars.at_end()

    assert (first.since, first.first_step, first.last_step, first.count) == ("start", 1, 3, 3)
    assert (second.since, second.first_step, second.last_step) == ("retry in step 4", 4, 5)
    assert [s.mean for s in (first, second)] == pytest.approx([mean(values[0]), mean(values[1])])
    assert [s.variance for s in (first, second)] == pytest.approx([variance(values[0]), variance(values[1])])
    assert missing[1] == "the script logged no scalar called 'lost'"
