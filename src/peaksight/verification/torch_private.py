"""The private names of PyTorch that recording needs, in one place."""

import torch


def in_backward() -> bool:
    """Whether the caller runs inside a backward pass, as the recomputation of a checkpointed region does."""
    return torch._C._current_graph_task_id() != -1


def persistent_buffers(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The buffers of `module` itself that its state dict holds, by name."""
    left_out = module._non_persistent_buffers_set
    return {name: buffer for name, buffer in module._buffers.items() if buffer is not None and name not in left_out}
