"""How well and how fast `peaksight read` explains logs."""
