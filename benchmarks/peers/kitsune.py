"""torch-kitsune: `kitsune.predict.predict_memory` on the model in hand."""

from contextlib import nullcontext

from torch import nn
from torch._subclasses import FakeTensorMode

from benchmarks.accuracy.workloads import Workload
from benchmarks.peers import settings
from benchmarks.peers.answers import RefusedError
from benchmarks.peers.fake_modules import to_meta
from benchmarks.peers.first_step import TrainingStep


def predict(_: Workload, step: TrainingStep) -> int:
    """Bytes reserved: its total has a share for what the allocator caches.

    A model of transformers is on the meta device, as in `predict_hf_memory`. Others, which the tool may run, are fake
    tensors, so that nothing is computed.
    """
    from kitsune.predict import predict_memory

    if step.batch is None:
        raise RefusedError("its input is one tensor; this model takes a list of images", is_applicable=False)
    is_hf = hasattr(step.model, "config")
    with nullcontext() if is_hf else FakeTensorMode(allow_non_fake_inputs=True):
        model: nn.Module = to_meta(step.model) if is_hf else step.model
        return predict_memory(
            model,
            input_shape=tuple(step.batch.shape[1:]),
            batch_size=settings.batch_size(step),
            dtype=step.autocast_dtype or settings.model_dtype(step),
            optimizer=settings.optimizer_name(step, momentum="_momentum"),
            training=True,
            gpu="h100-sxm",
        ).total_bytes
