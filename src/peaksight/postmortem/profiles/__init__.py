"""Device memory profiles of JAX: files in the format of pprof."""

from peaksight.postmortem.profiles.device_memory import is_profile, read_profile

__all__ = ["is_profile", "read_profile"]
