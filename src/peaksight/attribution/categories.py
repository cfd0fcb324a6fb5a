"""What an allocation is for: its role where the run saw one, else how long it lived."""

from bisect import bisect_left

from peaksight.records import Allocation, Capture, Category, Phase, Role

_OF_ROLE = {
    Role.PARAMETER: Category.PARAMETER,
    Role.GRADIENT: Category.GRADIENT,
    Role.OPTIMIZER_STATE: Category.OPTIMIZER_STATE,
    Role.BUFFER: Category.BUFFER,
    Role.INPUT: Category.INPUT,
    Role.WORKSPACE: Category.WORKSPACE,
    Role.COMMUNICATION: Category.COMMUNICATION,
    Role.UNKNOWN: Category.OTHER,
}


class Categories:
    """Categories of the allocations of one capture.

    An unmarked allocation is told by its lifetime. Born in a forward and alive when the next backward pass starts,
    it is an activation; so is what a backward pass recomputes with autograd recording (checkpointing). Made before
    the first forward and still needed then, it is an input. Whatever else lived briefly is temporary.

    Limitations:
        A tensor that the script keeps for itself counts as an activation while a backward pass sees it alive. In a
        forward that no backward follows, what autograd records counts as saved, for nothing shows otherwise.
    """

    def __init__(self, capture: Capture) -> None:
        """Index the backward passes of `capture`."""
        self._backward_began = sorted(tick for step in capture.steps for tick in step.backward_began)

    def of(self, allocation: Allocation) -> Category:
        """The category of `allocation`."""
        if allocation.role is not Role.UNMARKED:
            return _OF_ROLE[allocation.role]
        match allocation.phase:
            case Phase.BACKWARD:
                return Category.ACTIVATION if allocation.grad_enabled else Category.TEMPORARY
            case Phase.INIT:
                return Category.INPUT if self._reaches_backward(allocation) else Category.TEMPORARY
            case Phase.FORWARD | Phase.EVALUATION:
                return Category.ACTIVATION if self._reaches_backward(allocation) else Category.TEMPORARY
            case Phase.OPTIMIZER:
                return Category.TEMPORARY
        return Category.OTHER

    def _reaches_backward(self, allocation: Allocation) -> bool:
        """Whether `allocation` is alive when the first backward pass after its birth starts."""
        following = bisect_left(self._backward_began, allocation.born)
        if following == len(self._backward_began):
            return allocation.grad_enabled
        return allocation.died is None or allocation.died > self._backward_began[following]
