"""torch.distributed.pipelining: what a stage learns of its neighbours, which are not there, about their tensors.

The stage before gives what the first stage gives, as blocks of one model have outputs of one shape. The stage after
gives a gradient for each output.
"""

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from peaksight.errors import UnsupportedError
from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches

Sent = dict[tuple[str, int], bytes]
Note = Callable[..., None]

_OF_FIRST_STAGE = ("outputs of the first stage", 0)


def install(patches: Patches, sent: Sent, note: Note) -> None:
    """Answer for other stages until `patches` is left; `sent` keeps what the first one gives.

    `note` is `Approximations.note`.
    """

    def change(module: ModuleType) -> None:
        if hasattr(module, "_StageBackwardMeta") and hasattr(module.PipelineStage, "_recv_meta"):
            neighbours = _Neighbours(module, sent, note)
            for name in ("_send_meta", "_recv_meta", "_warmup_forward_vote", "_warmup_backward_result"):
                patches.set(module.PipelineStage, name, _as_method(getattr(neighbours, name.lstrip("_"))))

    change_modules(patches, {"torch.distributed.pipelining.stage": change})


class _Neighbours:
    """Of every stage of this rank: each method stands for one of `PipelineStage`."""

    def __init__(self, module: ModuleType, sent: Sent, note: Note) -> None:
        self._module, self._sent, self._note = module, sent, note
        self._is_static = False

    def send_meta(self, stage: Any, meta: Any, to: int) -> None:
        """Also to a stage of this rank that asks by way of others."""
        if stage.is_first:
            self._sent[_OF_FIRST_STAGE] = pickle.dumps(meta)

    def recv_meta(self, stage: Any, source: int) -> Any:
        """Gradients are like outputs."""
        if source < stage.stage_index:
            return self._outputs_before(stage)
        return self._module._StageBackwardMeta(self._module._derive_grad_metas(stage._stage_meta.outputs))

    def _outputs_before(self, stage: Any) -> Any:
        if _OF_FIRST_STAGE not in self._sent:
            raise UnsupportedError(
                f"Can't simulate stage {stage.stage_index} of the pipeline: what it is given is known from the first "
                "stage, which no rank before this one has. Give rank 0 the first stage, or PipelineStage input_args.",
                slug="pipeline-stages",
            )
        if stage.stage_index > 1:
            self._note("pipeline-stages", f"stage {stage.stage_index}")
        return pickle.loads(self._sent[_OF_FIRST_STAGE])

    def warmup_forward_vote(self, stage: Any, has_backward: bool, received_acc: Any = None) -> torch.Tensor:
        """Whether the script has said all that stages ask each other: the others say what this one says."""
        asks = self._module.InferenceMode.needs_dynamic(stage._user_meta, has_backward)
        self._is_static = not asks
        return self._vote(stage)

    def warmup_backward_result(self, stage: Any, received_result: Any = None) -> torch.Tensor:
        """The same."""
        return self._vote(stage)

    def _vote(self, stage: Any) -> torch.Tensor:
        return torch.tensor([int(self._is_static)], dtype=torch.int32, device=stage.device)


def _as_method(function: Any) -> Any:
    return lambda stage, *args, **kwargs: function(stage, *args, **kwargs)
