"""Runs `peaksight verify` on pairs of scripts whose verdict is known; `make controls` writes docs/controls.md."""
