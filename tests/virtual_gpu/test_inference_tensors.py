"""Results of inference mode are of two kinds, told by their sources: views of other tensors are not of its own kind."""

import pytest
import torch

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("is_inference", [[True, False, True], [False, True, False]])
def test_views_in_inference_mode(virtual_gpu, is_inference):
    """A view is of its source's kind, also where one of the other kind, otherwise alike, was seen before."""
    made_before = torch.zeros(4, 5, device="cuda")
    with torch.inference_mode():
        made_within = made_before.clone()
        views = [(made_within if kind else made_before).unsqueeze(1) for kind in is_inference]

    assert is_inference == [view.is_inference() for view in views]


def test_inference_tensors_outside_of_inference_mode(virtual_gpu):
    """What is computed from them is no inference tensor; a view of one still is."""
    with torch.inference_mode():
        made = torch.zeros(4, 5, device="cuda")

    assert [True, False] * 2 == [found.is_inference() for _ in range(2) for found in (made.unsqueeze(1), made + 1)]
