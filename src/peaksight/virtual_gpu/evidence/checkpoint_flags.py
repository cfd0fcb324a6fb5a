"""The attributes by which modules are told to checkpoint, and what came of it."""

from collections.abc import Iterator

from torch import nn

from peaksight.records import CheckpointFlagFact
from peaksight.virtual_gpu.evidence.modules_seen import ModulesSeen
from peaksight.virtual_gpu.evidence.patterns import CHECKPOINT_FLAGS


class CheckpointFlags:
    """The flagged modules as they were at the end of the last step."""

    def __init__(self, modules: ModulesSeen) -> None:
        """No step has ended; `modules` knows the roots and their calls."""
        self._modules = modules
        self.facts: tuple[CheckpointFlagFact, ...] = ()

    def step_ends(self, checkpointed: list[str]) -> None:
        """Keep what the flags are now; `checkpointed` are the paths of what was in this step."""
        self.facts = tuple(self._facts(checkpointed))

    def _facts(self, checkpointed: list[str]) -> Iterator[CheckpointFlagFact]:
        for module in self._modules.all_modules():
            flag = _flag_of(module)
            if flag:
                path = self._modules.path_of(module)
                yield CheckpointFlagFact(
                    module=path,
                    kind=type(module).__name__,
                    flag=flag,
                    training=module.training,
                    num_calls_with_grad=self._modules.num_calls_with_grad(module),
                    num_checkpoints=sum(each == path or each.startswith(f"{path}.") for each in checkpointed),
                )


def _flag_of(module: nn.Module) -> str:
    """The name of the flag that is set on `module` itself."""
    return next((flag for flag in CHECKPOINT_FLAGS if vars(module).get(flag) is True), "")
