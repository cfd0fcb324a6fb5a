"""The end of a simulated run from the inside."""


class StopSimulation(BaseException):
    """Raised inside the script when enough steps were seen; its `finally` blocks and context managers run.

    It is no `Exception`, so that `except Exception` in a script does not swallow it. `reason` is the capture's
    `finished`: `steady`, `steps` or `unsteady`.
    """

    def __init__(self, reason: str) -> None:
        """Keep the `reason`."""
        super().__init__(reason)
        self.reason = reason
