"""MLflow: metrics of the script's active run, else of a run of its own."""

from typing import Any

from peaksight.live.sinks import figures_of, tag_of
from peaksight.records.watched import Line, WatchedProcess, WatchedStep

_EXPERIMENT = "peaksight-watch"


class MlflowSink:
    """Logs by a client, which leaves the script's active run as it is, and does not wait for the server."""

    name = "MLflow"

    def __init__(self, process: WatchedProcess) -> None:
        """Nothing is imported, and no run begun, before the first step ends."""
        self._process = process
        self._own: str | None = None
        self._prefix = f"rank{process.rank}/" if process.world_size > 1 else ""

    def write(self, line: Line) -> None:
        """Log `line` if it is a step."""
        if isinstance(line, WatchedStep):
            import mlflow

            milliseconds = int(line.time * 1000)
            metric = mlflow.entities.Metric
            metrics = [
                metric(self._prefix + tag_of(name, line.device), float(value), milliseconds, line.step)
                for name, value in figures_of(line).items()
            ]
            mlflow.MlflowClient().log_batch(self._run(), metrics, synchronous=False)

    def close(self) -> None:
        """End the run if it is ours."""
        if self._own is not None:
            import mlflow

            mlflow.flush_async_logging()
            mlflow.MlflowClient().set_terminated(self._own)

    def _run(self) -> Any:
        """The script's run as soon as there is one."""
        import mlflow

        active = mlflow.active_run()
        if active is not None:
            return active.info.run_id
        if self._own is None:
            client = mlflow.MlflowClient()
            experiment = client.get_experiment_by_name(_EXPERIMENT)
            number = experiment.experiment_id if experiment else client.create_experiment(_EXPERIMENT)
            self._own = client.create_run(number, run_name=f"{self._process.run}-rank{self._process.rank}").info.run_id
        return self._own
