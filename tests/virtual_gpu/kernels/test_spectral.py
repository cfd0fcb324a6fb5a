"""Fourier transforms, against what an H200 allocates (torch 2.11+cu130, 2026-11-28, benchmarks/operators)."""

import pytest
import torch

from ..cards import births_on, events_on, requested, slugs

pytestmark = pytest.mark.torch


def real_of(*shape, dtype=torch.float32):
    """Makes a tensor on the card."""
    return lambda: torch.empty(*shape, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    ("transform", "given", "measured"),
    [
        (torch.fft.rfft, real_of(5, 6, 7), [960]),
        (lambda x: torch.fft.rfft(x, dim=-2), real_of(5, 6, 7), [1120, 840, -840]),
        (torch.fft.irfft, real_of(5, 6, 7), [1680, 1440, 1680, -1680, -1680]),
        (lambda x: torch.fft.fftn(x, dim=-2), real_of(5, 6, 7), [1680, 1680, 1680, -1680, -1680]),
        (torch.fft.rfftn, real_of(5, 6, 7), [960, 960, -960]),
        (lambda x: torch.fft.irfft2(torch.fft.rfft2(x)), real_of(8, 32, 64, 64),
         [4_325_376, 4_194_304, 4_325_376, -4_325_376, -4_325_376]),
        (lambda x: torch.fft.rfft(x, n=8), real_of(2, 8, 16, dtype=torch.float16), [320, 256, -256]),
        (torch.fft.fftshift, real_of(9, 10), [360, 360, -360]),
    ],
)  # fmt: skip
def test_copies(virtual_gpu, transform, given, measured):
    """What cuFFT could not walk through, or would overwrite."""
    tensor = given()
    with events_on(virtual_gpu) as events:
        _kept = transform(tensor)

    assert measured == events


def test_a_size_that_was_not_measured_is_listed(virtual_gpu):
    """Only cuFFT knows the workspace of a large prime in two dimensions."""
    torch.fft.rfft2(real_of(4, 1009, 1009)())

    assert "fft-workspace" in slugs(virtual_gpu)


def test_copies_of_a_large_transform(virtual_gpu):
    """Back from 16,384 frequencies: a copy of the input, which cuFFT overwrites, and no workspace on the card."""
    spectra = torch.fft.rfft(real_of(4, 16384)())
    with births_on(virtual_gpu) as births:
        _kept = torch.fft.irfft(spectra)

    assert sorted([spectra.nbytes, 4 * 16384 * 4]) == sorted(requested(births))
    assert "fft-workspace" not in slugs(virtual_gpu)


# Rows, their size, and the workspaces ahead and of complex rows that the card took.
WORKSPACES = [
    (64, 100, 0, 0), (8, 1009, 65536, 0), (64, 2600, 665_600, 0), (8, 8192, 0, 0), (8, 12288, 393_216, 0),
    (64, 16385, 8_390_144, 8_389_120), (64, 44100, 11_290_112, 22_579_200), (8, 65537, 10_496_512, 16_797_696),
]  # fmt: skip


@pytest.mark.parametrize(("num_rows", "size", "ahead", "of_complex"), WORKSPACES)
def test_workspaces_of_rows(virtual_gpu, num_rows, size, ahead, of_complex):
    """In single precision, within a twentieth."""
    real = real_of(num_rows, size)()
    spectra = torch.zeros(num_rows, size, dtype=torch.complex64, device="cuda")
    for transform, tensor, measured in ((torch.fft.rfft, real, ahead), (torch.fft.fft, spectra, of_complex)):
        with births_on(virtual_gpu) as births:
            result = transform(tensor)

        assert measured == pytest.approx(sum(requested(births)) - result.nbytes, rel=0.05, abs=2048)
