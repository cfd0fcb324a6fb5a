"""Environment variables that switch libraries to their own offline modes for the length of a simulated run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

OFFLINE_SWITCHES = {
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
def environment(directory: str) -> Iterator[None]:
    """Set the switches, keep temporary files and MLflow's store below `directory`; restore every variable at exit.

    Enter it before the script imports libraries: some read their switch at import.
    """
    before = dict(os.environ)
    os.environ |= OFFLINE_SWITCHES
    os.environ |= {"TMPDIR": directory, "MLFLOW_TRACKING_URI": f"file:{os.path.join(directory, 'mlruns')}"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
