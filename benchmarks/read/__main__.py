"""Prints the score on the public reports, then the times: `python -m benchmarks.read [--megabytes 100]`."""

from benchmarks.read import score, speed

if __name__ == "__main__":
    score.main()
    speed.main()
