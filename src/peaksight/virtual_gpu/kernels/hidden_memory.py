"""What kernels take beside their results, on each card: from its allocator, and from the driver."""

from collections.abc import Callable
from functools import partial
from typing import Any

from peaksight.gpus import Card
from peaksight.virtual_gpu.approximations import Approximations
from peaksight.virtual_gpu.device_rules import DeviceRules
from peaksight.virtual_gpu.kernels.cublas import CublasWorkspaces
from peaksight.virtual_gpu.kernels.outside import OutsideMemory
from peaksight.virtual_gpu.kernels.peer_copies import pass_through
from peaksight.virtual_gpu.kernels.temporaries import KernelCall
from peaksight.virtual_gpu.kernels.workspaces import Workspaces
from peaksight.virtual_gpu.memory.devices import Devices
from peaksight.virtual_gpu.memory.ledger import Ledger

# Called with the ledger of a full card, a library, the bytes that it could not get and the error that it reports.
LibraryFailed = Callable[[Ledger, str, int, Exception], None]


class HiddenMemory:
    """The workspaces, handles and kernels that each card of a process has."""

    def __init__(
        self, devices: Devices, card: Card, rules: DeviceRules, failed: LibraryFailed, approximations: Approximations
    ) -> None:
        """Nothing is taken yet; `failed` raises, or returns when the card has what a library asked for after all."""
        self._ledgers = devices.ledgers
        self._copies_in_pieces = len(self._ledgers) > 1 and not card.has_peers
        self._workspaces = [Workspaces(each, CublasWorkspaces(rules, each), approximations) for each in devices.ledgers]
        self._outside = [
            OutsideMemory(card, rules, each.take_outside, partial(failed, each), approximations.note)
            for each in devices.ledgers
        ]

    def take(self, device: int, call: KernelCall, in_backward: bool, note_results: Callable[[Any], None]) -> None:
        """`call` ran on `device`: note its results, and take what its kernels take beside them."""

        def launch(results: Any) -> None:
            note_results(results)
            self._outside[device].before_launch(call, in_backward)

        self._workspaces[device].take(call, in_backward, launch)
        if self._copies_in_pieces:
            pass_through(call, self._ledgers)
