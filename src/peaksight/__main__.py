"""`python -m peaksight`."""

import sys

from peaksight.cli import main

if __name__ == "__main__":
    sys.exit(main())
