"""The workspaces of cuFFT for rows of one size, which it gives back after each transform.

Read off 450 transforms of 60 sizes from 17 to 4,194,304 on an H200 (torch 2.11+cu130, 2026-11-29,
benchmarks/kernels/fourier.py). Where a row does not fit into the memory of a multiprocessor, it passes through a
buffer; a large prime goes through a transform of more than twice its size (Bluestein).

Limitations:
    How much more than twice is cuFFT's choice: up to a twentieth is missing. Odd sizes of small primes above 4096 were
    not measured.
"""

SMALL_SIZE = 4096
LARGEST_FACTOR = 127
SMALL_FACTORS = (2, 3, 5, 7, 11)
FITTING_BYTES = 200_000
LARGEST_FITTING_POWER = 1 << 14
BLUESTEIN = 4.1


def of_complex_rows(size: int, num_rows: int, itemsize: int) -> int:
    """Bytes for complex rows, whose real and imaginary parts have `itemsize` bytes."""
    return int(num_rows * 2 * itemsize * size * _buffers(size, itemsize))


def of_real_rows(size: int, num_rows: int, itemsize: int) -> int:
    """Bytes for real rows: those of an odd size go in pairs, those of an even one as complex ones of half the size."""
    if size <= LARGEST_FACTOR or (size <= SMALL_SIZE and _largest_factor(size) <= SMALL_FACTORS[-1]):
        return 0
    largest_power = LARGEST_FITTING_POWER if itemsize <= 4 else SMALL_SIZE
    if size.bit_count() == 1 and size <= largest_power:
        return 0
    row_bytes = 2 * itemsize * size
    if size % 2 == 0:
        return int(num_rows * row_bytes / 2 * max(1, _buffers(size // 2, itemsize)))
    return int((num_rows + 1) // 2 * row_bytes * (1 + max(1, _buffers(size, itemsize))))


def _buffers(size: int, itemsize: int) -> float:
    """How many buffers as large as a complex row."""
    if size <= SMALL_SIZE:
        return 0
    factor = _largest_factor(size)
    if factor <= SMALL_FACTORS[-1]:
        fits = 2 * itemsize * size <= FITTING_BYTES or (size.bit_count() == 1 and size <= LARGEST_FITTING_POWER)
        return 0 if fits else 1
    return BLUESTEIN if factor > LARGEST_FACTOR else 1


def _largest_factor(size: int) -> int:
    factor, largest = 2, 1
    while factor * factor <= size:
        while size % factor == 0:
            size, largest = size // factor, factor
        factor += 1
    return max(size, largest)
