"""Kinds of fixes for scripts under JAX: one a file, each with a `FIX`."""
