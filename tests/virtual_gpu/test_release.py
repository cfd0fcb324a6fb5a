"""A release of torch that lacks a private name."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.torch

PROGRAM = """
from torch._subclasses import fake_tensor
del fake_tensor.FakeTensorDeviceMismatchError
import peaksight.virtual_gpu
from peaksight.errors import UnsupportedError
try:
    peaksight.virtual_gpu.simulate
except UnsupportedError as error:
    print(error.slug, error)
"""


def test_a_release_that_lacks_a_name_is_refused():
    """With the name, before anything of the virtual GPU is there."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("torch-release Can't simulate on torch 2.")
    assert "'FakeTensorDeviceMismatchError'. Install torch 2.13 or 2.14." in done.stdout
