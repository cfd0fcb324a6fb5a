"""The regions that torchvision's detectors train on: of those drawn for a picture no more than a share shows objects.

`BalancedPositiveNegativeSampler` draws as many regions as there are objects in, up to that share, and fills up with
background. Masks and key points are of the former alone: how many there are only values tell, so it is the share.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.tensors import true_counts


def install(patches: Patches) -> None:
    """Bound the labels that aren't background until `patches` is left."""

    def bound_heads(module: ModuleType) -> None:
        heads = module.RoIHeads
        patches.set(heads, "select_training_samples", _bounded(heads.select_training_samples))

    change_modules(patches, {"torchvision.models.detection.roi_heads": bound_heads})


def _bounded(select: Callable[..., Any]) -> Callable[..., Any]:
    """`RoIHeads.select_training_samples`, whose third result are the labels of every picture's regions."""

    def select_training_samples(heads: Any, proposals: Any, targets: Any) -> Any:
        selected = select(heads, proposals, targets)
        sampler = heads.fg_bg_sampler
        for labels in selected[2]:
            true_counts.bound(labels, int(sampler.batch_size_per_image * sampler.positive_fraction))
        return selected

    return select_training_samples
