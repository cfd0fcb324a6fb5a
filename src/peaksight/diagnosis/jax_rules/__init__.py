"""One cause of a jitted program of JAX a file, with the text that `peaksight explain` prints."""
