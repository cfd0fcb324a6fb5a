"""The tiles of a product's last wave, which multiprocessors share out where they are fewer than those."""


def num_sums(num_tiles: int, num_multiprocessors: int, *, most_parts: int) -> int:
    """How many sums of a tile are left in the workspace.

    Each tile of the last wave has as many parts as there are multiprocessors for it, up to `most_parts`; where that is
    one it is not split, and none is left.
    """
    num_shared = num_tiles % num_multiprocessors
    num_parts = min(num_multiprocessors // max(num_shared, 1), most_parts)
    return num_parts * num_shared if num_parts > 1 else 0
