"""Cases in the sizes of a training run: layers, attention, norms, losses, indexing and reordering."""

from collections.abc import Callable, Iterator

from benchmarks.operators.layers.attention import attention, transformers
from benchmarks.operators.layers.convolutions import convolutions, network_convolutions
from benchmarks.operators.layers.detection import detection
from benchmarks.operators.layers.images import images
from benchmarks.operators.layers.indexing import indexing
from benchmarks.operators.layers.losses import losses
from benchmarks.operators.layers.making import Variant
from benchmarks.operators.layers.norms import norms
from benchmarks.operators.layers.products import products, reductions
from benchmarks.operators.layers.recurrent import cells, recurrent
from benchmarks.operators.layers.training import linear_algebra, training

LAYERS: dict[str, Callable[[], Iterator[Variant]]] = {
    function.__name__: function
    for function in (
        recurrent, cells, transformers, attention, norms, indexing, images, convolutions, losses, products,
        reductions, training, linear_algebra, detection, network_convolutions,
    )
}  # fmt: skip
