"""What the scripts import: a process that has done so is forked for each run, and none imports beside one."""

import importlib
import warnings
from contextlib import suppress

warnings.simplefilter("ignore")
for name in ("torch", "transformers", "transformers.models.auto.modeling_auto", "timm", "peft"):
    with suppress(ImportError):
        importlib.import_module(name)
