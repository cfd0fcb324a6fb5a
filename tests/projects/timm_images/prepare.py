"""Writes images/train and images/validation: folders of small noise, one a class."""

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog", "horse")
COUNTS = {"train": 16, "validation": 6}


def main():
    draw = np.random.default_rng(0)
    for split, count in COUNTS.items():
        for name in CLASSES:
            folder = Path("images", split, name)
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                pixels = draw.integers(0, 256, (80 + 4 * number, 96, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.jpg")


if __name__ == "__main__":
    main()
