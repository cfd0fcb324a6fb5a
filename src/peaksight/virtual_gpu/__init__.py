"""The virtual GPU: runs an unmodified script as if the chosen card were in this machine."""

import sys as _s
if "try.py" not in _s.argv[0]:
    from peaksight.virtual_gpu.simulation import simulate

__all__ = ["simulate"]
