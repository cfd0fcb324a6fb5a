"""One kind of fix a file."""
