"""Linear systems, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import events_on, slugs

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def handle(virtual_gpu):
    """The handle of cuBLAS has its workspace."""
    matrix = torch.empty(2, 2, device="cuda")
    matrix @ matrix


def matrices(batch, n):
    """A batch on the card."""
    return torch.empty(batch, n, n, device="cuda")


PERMUTED = [512, 4096, -512, 512, 4096, 131_072, -131_072, -4096, -512, -4096]


@pytest.mark.parametrize(
    ("batch", "n", "temporaries"),
    [
        (100, 4, [6400, 1600, 800, -800, 800, 800, -800, -800, -1600, -6400]),
        (8, 64, [131_072, 2048, 64, -64, *PERMUTED, -2048, -131_072]),
        (4, 513, [4_210_704, 8208, 4104, 16_416, -4104, 4104, 16_416, 4_210_704, -4_210_704, -16_416, -4104, -16_416,
                  -8208, -4_210_704]),
    ],
)  # fmt: skip
def test_inverse(virtual_gpu, batch, n, temporaries):
    """Factors, pivots and a permutation; small ones are solved in cuBLAS."""
    given = matrices(batch, n)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.inv(given)

    size = given.numel() * 4
    assert [size, 4 * batch, *temporaries, 1, -1, -4 * batch] == events


def test_solution(virtual_gpu):
    """The permuted right side is a copy."""
    given = matrices(8, 64)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.solve_ex(given, given)

    assert [131_072, 131_072, 2048, 32, 64, -64, *PERMUTED] == events[: 6 + len(PERMUTED)]


def test_determinant(virtual_gpu):
    """The diagonal's product and the number of moved pivots."""
    given = matrices(100, 4)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.det(given)

    temporaries = [400, 800, -800, 400, 16, 400, 800, 3200, -3200, -400, -16, -800, -400, -400]
    assert [400, 6400, 1600, *temporaries] == events[: 3 + len(temporaries)]


def test_factors_taken_apart(virtual_gpu):
    """Packed factors, pivots, infos and a permutation."""
    given = matrices(64, 16)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.lu(given)

    size, apart = 65_536, [128, 8192, -128, -8192, -256, -4096]
    assert [size, size, size, size, 4096, 256, 512, -512, -size, *apart] == events


@pytest.mark.parametrize(("batch", "n", "num_bytes"), [(8, 64, 11 * 131_072), (1, 300, 13 * 360_000)])
def test_exponential(virtual_gpu, batch, n, num_bytes):
    """Five powers and partial sums beside the result, whatever the norm."""
    given = matrices(batch, n)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.matrix_exp(given)

    assert num_bytes == sum(size for size in events if size > 0)


def test_least_squares_of_a_batch(virtual_gpu):
    """Copies of both sides."""
    given = matrices(100, 4)
    with events_on(virtual_gpu) as events:
        _kept = torch.linalg.lstsq(given, given)

    assert [400, 6400, 6400, 6400, 800, 800, -800, -800, -6400, -6400, 1, -1, -400] == events


def test_least_squares_of_one_system_is_listed(virtual_gpu):
    """Its shapes are known, its workspace is not."""
    solution = torch.linalg.lstsq(torch.empty(300, 4, device="cuda"), torch.empty(300, 2, device="cuda"))

    assert ((4, 2), (2,)) == (tuple(solution.solution.shape), tuple(solution.residuals.shape))
    assert "linalg-workspace" in slugs(virtual_gpu)
