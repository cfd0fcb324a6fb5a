"""Running the person's script as Python would, without harm to their files."""

from peaksight.virtual_gpu.script.explanations import explain
from peaksight.virtual_gpu.script.runner import Ending, run_script
from peaksight.virtual_gpu.script.scratch import Scratch

__all__ = ["Ending", "Scratch", "explain", "run_script"]
