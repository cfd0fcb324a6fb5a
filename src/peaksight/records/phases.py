"""What the training loop was doing, in the words of reports."""

from enum import StrEnum


class Phase(StrEnum):
    """What the training loop was doing."""

    INIT = "init"
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    EVALUATION = "evaluation"
    SAVE = "save"
    OTHER = "other"
