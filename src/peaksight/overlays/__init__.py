"""Applies a plan to torch, on the virtual card or a real one, without editing the script."""
