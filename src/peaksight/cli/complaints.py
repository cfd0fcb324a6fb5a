"""What is wrong, in a sentence on stderr."""

import sys

from peaksight.live.sinks.in_place import wrapped


def complain(message: str) -> None:
    """Say `message`, on stderr as it is now."""
    print(wrapped(f"peaksight: {message}", sys.stderr), file=sys.stderr, flush=True)
