"""Arrays of NumPy, as those of JAX are compared."""

from typing import Any

import jax
import numpy as np

from peaksight.verification.measuring import Arrays

Array = np.ndarray[Any, Any]


class NumpyArrays:
    """The arithmetic of NumPy, as `Arrays` describes it."""

    def wide(self, array: Array) -> Array:
        """In float64."""
        return array.astype(np.float64)

    def norm(self, array: Array) -> float:
        """The Euclidean norm."""
        return float(np.linalg.norm(array.ravel()))

    def num_elements(self, array: Array) -> int:
        """How many numbers it has."""
        return array.size

    def middle(self, array: Array) -> float:
        """The median of the absolute values that are not zero."""
        values = np.abs(array[array != 0])
        return float(np.median(values)) if values.size else 0.0

    def resolution(self, array: Array) -> float:
        """The relative spacing; NumPy itself does not know types such as bfloat16."""
        is_float = jax.dtypes.issubdtype(array.dtype, np.floating)
        return float(jax.numpy.finfo(array.dtype).eps) if is_float else 0.0

    def is_finite(self, array: Array) -> bool:
        """No NaN, no infinity."""
        return bool(np.isfinite(array).all())

    def is_bitwise(self, one: Array, other: Array) -> bool:
        """The same bits."""
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()

    def random(self, like: Array, seed: int) -> Array:
        """Normal numbers."""
        return np.asarray(np.random.default_rng(seed).standard_normal(like.shape))

    def scaled(self, array: Array, factor: float) -> Array:
        """Times `factor`."""
        return array * factor

    def sum(self, array: Array, error: Array) -> Array:
        """In the type of the first."""
        return np.asarray(array.astype(np.float64) + error).astype(array.dtype)


NUMPY: Arrays[Array] = NumpyArrays()
