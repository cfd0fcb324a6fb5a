"""PyTorch's `torch.distributed._tools.mem_tracker.MemTracker`, as its docstring shows it."""

from torch.distributed._tools.mem_tracker import MemTracker

from benchmarks.accuracy.workloads import Workload
from benchmarks.peers.first_step import TrainingStep, run_script


def predict(workload: Workload, _: TrainingStep) -> int:
    """Bytes allocated at the peak of all the script's steps.

    Model, optimizer and batch are registered before the first step; statistics of modules are reset before each other
    one, as its error message asks for.
    """
    tracker = MemTracker()

    def track(step: TrainingStep) -> None:
        if tracker.memory_tracking:
            tracker.reset_mod_stats()
        else:
            tracker.track_external(step.model, *step.optimizers, *step.tensors)
            tracker.__enter__()

    run_script(workload, track)
    tracker.__exit__(None, None, None)
    return max(snapshot["Total"] for snapshot in tracker.get_tracker_snapshot("peak").values())
