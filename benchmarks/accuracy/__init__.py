"""Predictions compared with what a real GPU did, see benchmarks/truth."""
