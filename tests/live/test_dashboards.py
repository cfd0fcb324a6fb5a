"""TensorBoard, wandb and MLflow, each asked itself for what it was given."""

import os

import pytest

from peaksight.live.process import this_process
from peaksight.live.sinks.mlflow import MlflowSink
from peaksight.live.sinks.tensorboard import TensorBoardSink
from peaksight.live.sinks.wandb import WandbSink
from peaksight.records.watched import WatchedEvent, WatchedStep

pytestmark = pytest.mark.torch

STEPS = [WatchedStep(step=n, time=1000.0 + n, seconds=0.1, device=0, peak_allocated_bytes=n * 100) for n in (1, 2)]
PEAK = "peaksight/card0/peak_allocated_bytes"


def test_tensorboard(tmp_path):
    """Scalars by step, events as text."""
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    sink = TensorBoardSink(tmp_path, this_process(()))
    for step in STEPS:
        sink.write(step)
    sink.write(WatchedEvent(kind="retry", step=2, time=1002.0, text="full"))
    sink.close()
    found = loading.EventAccumulator(str(tmp_path / "rank0")).Reload()

    assert [(event.step, event.value) for event in found.Scalars(PEAK)] == [(1, 100.0), (2, 200.0)]
    assert "peaksight/retry/text_summary" in found.Tags()["tensors"]


@pytest.fixture
def wandb(monkeypatch, tmp_path):
    """Offline, in an empty directory."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    return wandb


def test_wandb(wandb):
    """GIVEN a script that has imported it, THEN its run is waited for, and its steps stay as they are."""
    sink = WandbSink(this_process(()))
    sink.write(STEPS[0])
    run = wandb.init(project="mine")
    sink.write(STEPS[1])
    assert run.step == 0

    run.log({"loss": 1.0})
    sink.close()

    assert run.step == 1
    assert (run.summary[PEAK], run.summary["peaksight/step"], run.project) == (200, 2, "mine")
    run.finish()


@pytest.mark.parametrize("may_begin", [True, False])
def test_wandb_without_a_run_of_the_script(wandb, may_begin):
    """THEN there is one of our own: at once, or at the end if the script might still have begun one."""
    sink = WandbSink(this_process(()))
    sink._script_may_begin = may_begin
    for step in STEPS:
        sink.write(step)
    assert may_begin == (sink._own is None)
    assert may_begin or sink._own.summary[PEAK] == 200
    sink.close()

    assert (sink._own.project, wandb.run) == ("peaksight-watch", None)


@pytest.fixture
def mlflow(monkeypatch, tmp_path):
    """With its records in an empty directory."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("GIT_PYTHON_REFRESH", "quiet")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"file:{tmp_path}{os.sep}runs")
    yield mlflow
    mlflow.set_tracking_uri(before)


@pytest.mark.parametrize("has_run", [True, False])
def test_mlflow(mlflow, has_run):
    """In the script's own run if there is one, which stays active; else in one that is ended."""
    active = mlflow.start_run() if has_run else None
    sink = MlflowSink(this_process(()))
    for step in STEPS:
        sink.write(step)
        mlflow.flush_async_logging()  # files, unlike a server, do not take two at a time
    run_id = active.info.run_id if active else sink._own
    sink.close()
    client = mlflow.MlflowClient()

    assert [(metric.step, metric.value) for metric in client.get_metric_history(run_id, PEAK)] == [(1, 100), (2, 200)]
    assert (mlflow.active_run() is not None) == has_run
    assert client.get_run(run_id).info.status == ("RUNNING" if has_run else "FINISHED")
    if has_run:
        mlflow.end_run()
