"""The five systems of examples/systems: what was blamed, what is so, and what a GPU said; `make systems`."""
