"""Scalars that the script logs, by whichever library: their mean and variance between the events of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from types import ModuleType
from typing import Any

from peaksight.live.watcher import Saying, Watcher
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.records.watched import WatchedScalar, WatchedStep

Hear = Callable[[str, Any], None]
ValuesOf = Callable[..., Mapping[str, Any]]

# After these the training may be another one.
_CHANGES = ("start", "retry", "thrash", "out-of-memory", "growth")


class Scalars(Watcher):
    """Keeps the mean and the variance of each of `names`, anew after each event that may change the training."""

    def __init__(self, names: Iterable[str]) -> None:
        """Nothing has been logged."""
        self._spans: dict[str, list[_Span]] = {name: [] for name in names}
        self._since = "start"
        self._step = 1

    def after(self, step: WatchedStep) -> Iterable[Saying]:
        """What is logged from now on belongs to the next step."""
        self._step = step.step + 1
        return ()

    def happened(self, kind: str) -> None:
        """Begin anew after an event that may change the training."""
        if kind in _CHANGES:
            self._since = f"{kind} in step {self._step}"

    def logged(self, name: str, value: Any) -> None:
        """The script logged `value` as `name`; a tensor is read only if it is one of ours."""
        spans = self._spans.get(name)
        if spans is None:
            return
        try:
            number = float(value)
        except (TypeError, ValueError):
            return
        if not spans or spans[-1].since != self._since:
            spans.append(_Span(since=self._since, first_step=self._step))
        spans[-1].add(number, self._step)

    def at_end(self) -> Iterator[WatchedScalar | Saying]:
        """One for each name and span, and a sentence for those that were never logged."""
        for name, spans in self._spans.items():
            for span in spans:
                yield span.record(name)
            if not spans:
                yield "no-scalar", f"the script logged no scalar called {name!r}"


@dataclass(slots=True, kw_only=True)
class _Span:
    """Welford's sums, which do not lose digits."""

    since: str
    first_step: int
    last_step: int = 0
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def add(self, value: float, step: int) -> None:
        self.count += 1
        self.last_step = step
        before = value - self.mean
        self.mean += before / self.count
        self.squares += before * (value - self.mean)

    def record(self, name: str) -> WatchedScalar:
        return WatchedScalar(
            name=name,
            since=self.since,
            first_step=self.first_step,
            last_step=self.last_step,
            count=self.count,
            mean=self.mean,
            variance=self.squares / (self.count - 1) if self.count > 1 else 0.0,
        )


def follow_scalars(patches: Patches, hear: Hear) -> None:
    """Call `hear` with the name and value of all that is logged, until `patches` is left: by TensorBoard's writer,
    wandb, MLflow, transformers' Trainer, Lightning's loggers and accelerate's trackers.

    One of them logs by another: a name is heard once for each call of the script.
    """
    heard: set[str] | None = None

    def wrap(owner: Any, name: str, values_of: ValuesOf) -> None:
        real = getattr(owner, name)

        @wraps(real)
        def logging(*args: Any, **kwargs: Any) -> Any:
            nonlocal heard
            is_outermost = heard is None
            heard = heard or set()
            try:
                for key, value in _values(values_of, args, kwargs):
                    if key not in heard:
                        heard.add(key)
                        hear(key, value)
                return real(*args, **kwargs)
            finally:
                heard = None if is_outermost else heard

        patches.set(owner, name, logging)

    def change(module: ModuleType) -> None:
        for class_name, method, values_of in _PLACES[module.__name__]:
            owner = getattr(module, class_name, None)
            if hasattr(owner, method):
                wrap(owner, method, values_of)

    change_modules(patches, dict.fromkeys(_PLACES, change))


def _values(values_of: ValuesOf, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """None of a call that is not as the library wants it: the library itself says so."""
    try:
        return list(values_of(*args, **kwargs).items())
    except Exception:
        return []


def _of_scalar(self: Any, tag: str, scalar_value: Any, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return {tag: scalar_value}


def _of_metric(self: Any, run_id: str, key: str, value: Any, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return {key: value}


def _of_batch(self: Any, run_id: str, metrics: Iterable[Any] = (), *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return {metric.key: metric.value for metric in metrics}


def _of_data(self: Any, data: Mapping[str, Any], *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return data


def _of_logs(self: Any, logs: Mapping[str, Any], *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return logs


def _of_metrics(self: Any, metrics: Mapping[str, Any], *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return metrics


def _of_values(self: Any, values: Mapping[str, Any], *args: Any, **kwargs: Any) -> Mapping[str, Any]:
    return values


_LIGHTNING = "trainer.connectors.logger_connector.logger_connector"
# By module: the class, its method, and what that logs.
_PLACES: dict[str, list[tuple[str, str, ValuesOf]]] = {
    "torch.utils.tensorboard.writer": [("SummaryWriter", "add_scalar", _of_scalar)],
    "tensorboardX.writer": [("SummaryWriter", "add_scalar", _of_scalar)],
    "wandb.sdk.wandb_run": [("Run", "log", _of_data)],
    "mlflow.tracking.client": [("MlflowClient", "log_metric", _of_metric), ("MlflowClient", "log_batch", _of_batch)],
    "transformers.trainer": [("Trainer", "log", _of_logs)],
    "accelerate.accelerator": [("Accelerator", "log", _of_values)],
    f"lightning.pytorch.{_LIGHTNING}": [("_LoggerConnector", "log_metrics", _of_metrics)],
    f"pytorch_lightning.{_LIGHTNING}": [("_LoggerConnector", "log_metrics", _of_metrics)],
}
