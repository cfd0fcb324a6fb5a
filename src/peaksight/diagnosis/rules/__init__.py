"""One cause a file. The text that a file begins with is what `peaksight explain` prints of its rule."""
