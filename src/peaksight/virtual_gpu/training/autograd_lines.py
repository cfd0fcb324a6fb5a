"""Backward allocations and their forward lines, through autograd's own sequence numbers.

Every node gets the next sequence number of its thread when it is created, just before its operator reaches the
dispatch mode. Noting the number there links a node to the line and module of its forward; in backward the
engine tells which node is running.
"""

from typing import Any

from peaksight.virtual_gpu.source_lines import NOWHERE, Lines
from peaksight.virtual_gpu.torch_private import current_autograd_node, made_number, next_sequence_nr


class AutogradLines:
    """Remembers where each autograd node was made.

    `running` is the number, from 1, of the node that ran when it was last asked for, 0 outside of backward.
    """

    def __init__(self) -> None:
        """No node is known yet."""
        self._made_at: dict[int, tuple[str, Lines]] = {}
        self._noted = next_sequence_nr()
        self._last: tuple[str, Lines] = ("", NOWHERE)
        self.running = 0

    def pending(self) -> bool:
        """Whether nodes were made since the last note."""
        return next_sequence_nr() > self._noted

    def note(self, module: str, lines: Lines) -> None:
        """The nodes made since the last note belong to `module` and `lines`."""
        upto = next_sequence_nr()
        for number in range(self._noted, upto):
            self._made_at[number] = (module, lines)
        self._noted = upto

    def of_running_node(self) -> tuple[str, Lines] | None:
        """Module and lines of the node that backward is running, None outside of backward.

        AccumulateGrad has no forward of its own: it gets those of the node that ran before it.
        """
        node: Any = current_autograd_node()
        if node is None:
            self.running = 0
            return None
        number = made_number(node)
        if number in self._made_at:
            self._last, self.running = self._made_at[number], number + 1
        return self._last
