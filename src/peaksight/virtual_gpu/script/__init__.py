"""Running the person's script as Python would, without harm to their files."""

from peaksight.virtual_gpu.script.runner import run_script
from peaksight.virtual_gpu.script.scratch import Scratch

__all__ = ["Scratch", "run_script"]
