"""The virtual GPU: runs an unmodified script as if the chosen card were in this machine."""

from peaksight.virtual_gpu.simulation import simulate

__all__ = ["simulate"]
