"""`python -m peaksight`."""

import sys
from pathlib import Path

if not sys.flags.safe_path:
    # Python looks in the working directory first, where a person may have a torch.py.
    sys.path[0] = str(Path(__file__).parents[1])

from peaksight.cli import command

if __name__ == "__main__":
    command()
