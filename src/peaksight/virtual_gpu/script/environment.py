"""Environment variables for the length of a simulated run: the script's own, and the offline modes of libraries."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

SWITCHES = {
    "HF_HUB_OFFLINE": "1",
    "HF_DEACTIVATE_ASYNC_LOAD": "1",  # transformers loads weights in threads, which no dispatch mode sees
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "DISABLED",
    "COMET_DISABLE_AUTO_LOGGING": "1",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "GIT_OPTIONAL_LOCKS": "0",
}


@contextmanager
def variables(values: Iterable[tuple[str, str | None]]) -> Iterator[None]:
    """Set variables, or unset those whose value is None; restore every variable at exit."""
    before = dict(os.environ)
    for name, value in values:
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def offline() -> Iterator[None]:
    """Set the switches; enter it before libraries are imported, for some read their switch then."""
    with variables(SWITCHES.items()):
        yield


@contextmanager
def environment(directory: str) -> Iterator[None]:
    """Set the switches, and keep temporary files and MLflow's store below `directory`."""
    places = {"TMPDIR": directory, "MLFLOW_TRACKING_URI": f"file:{os.path.join(directory, 'mlruns')}"}
    with variables((SWITCHES | places).items()):
        yield
