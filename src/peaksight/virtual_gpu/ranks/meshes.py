"""A mesh that the ranks do not fill, or of more than there are, is said in one sentence, with its line."""

from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from torch.distributed import device_mesh

from peaksight.errors import ScriptError
from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.ranks.world import World
from peaksight.virtual_gpu.source_lines import SourceLines


def install(patches: Patches, world: World, lines: SourceLines) -> None:
    """Look at the shape of each mesh until `patches` is left.

    Torch fails on too large ones too, after it has made groups. Ranks that are in no mesh fail later, for a
    tensor or a local rank that they do not have.
    """
    make = _within(device_mesh.init_device_mesh, world, lines)
    patches.set_wherever_imported("init_device_mesh", make, of=device_mesh, also_as="init_device_mesh")


def _within(make: Callable[..., Any], world: World, lines: SourceLines) -> Callable[..., Any]:
    @wraps(make)
    def make_within(device_type: str, mesh_shape: Sequence[int], *args: Any, **kwargs: Any) -> Any:
        num_ranks = prod(mesh_shape)
        if num_ranks > world.size or world.size % num_ranks:
            is_larger = num_ranks > world.size
            raise ScriptError(
                f"The mesh of {' x '.join(map(str, mesh_shape))} ranks at {lines.current().source} "
                f"{'is larger than' if is_larger else 'does not divide'} its world of {world.size}: "
                f"start the script with a multiple of {num_ranks} ranks (--ranks {num_ranks}), "
                "or give the mesh another shape.",
                slug="mesh-shape",
            )
        return make(device_type, mesh_shape, *args, **kwargs)

    return make_within
