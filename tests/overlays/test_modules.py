"""The modules that a plan names are found at the first call of what holds them."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.modules.module import _global_forward_pre_hooks

from peaksight.overlays.modules import when_called
from peaksight.overlays.patches import Patches

pytestmark = pytest.mark.torch


class Tower(nn.Sequential):
    """Holds what is searched for."""


def test_calls_are_followed_only_while_a_root_is_new():
    """A hook on every call of a module takes the host's time; roots that are made or copied later are found too."""
    acted, x, num_hooks = [], torch.ones(1, 2), len(_global_forward_pre_hooks)
    early = Tower(nn.Linear(2, 2))
    with Patches() as patches:
        when_called(patches, ["Tower.0"], acted.append)
        late = Tower(nn.Linear(2, 2))
        followed = []
        for root in (nn.Sequential(early), late, late, copy.deepcopy(late), late):
            root(x)
            followed.append(len(_global_forward_pre_hooks) - num_hooks)

    assert acted[:2] == [early[0], late[0]]
    assert len(acted) == 3
    assert followed == [1, 1, 1, 0, 0]
    assert len(_global_forward_pre_hooks) == num_hooks
