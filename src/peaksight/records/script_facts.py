"""What the script says, and what came of it: switches, frozen parameters, and statements that matter to a rule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFlagFact:
    """A module that has an attribute by which it is told to checkpoint, as it was in the last complete step.

    `flag` is the attribute, `training` the mode of the module, `num_calls_with_grad` counts its calls in which autograd
    recorded, `num_checkpoints` the calls of torch.utils.checkpoint in it and in what it holds.
    """

    module: str
    kind: str
    flag: str
    training: bool
    num_calls_with_grad: int
    num_checkpoints: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingFact:
    """Something that the script switched, and whether anything came of it.

    `kind` says what (`use_cache`, `output_hidden_states`), `at` where, `value` to what. `num_reached` counts the times
    that a module read it where it was set; `detail` says which module reads another value elsewhere, empty if none.
    """

    kind: str
    at: str
    value: str
    num_reached: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeFact:
    """A line of the person's files that freezes parameters, makes them need no gradient, itself or by a library.

    `at` is the line, `text` what its statement says, empty where a library does it. `condition` is the innermost filter
    around it (`if 'encoder' in name`), empty without one. `reached` tells whether it, or the loop with its filter, was
    come to. `num_parameters` counts how often it froze one. Of what it froze before the training began, `frozen_bytes`
    and `frozen_matrices` (parameters of more than one dimension) stayed so; `thawed_bytes` did not, because of the line
    `thawed_at`.
    """

    at: str
    text: str
    condition: str
    reached: bool
    num_parameters: int
    frozen_bytes: int
    frozen_matrices: int
    thawed_bytes: int
    thawed_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFact:
    """A statement of the person's files that matters to a rule, found in their text.

    `kind` is which: `checkpointing` asks for it; of work, `interval-after-work` has all its uses under an interval, and
    `slice-after-work` or `constant-slice-after-work` has one of every so many as its only use. `at` is the line, `text`
    what it says, `num_runs` how often it ran, None where that is not known. Work reaches to `last_line`, its result is
    called `name` in the function `where` (`train.py:main`), and used at `used_at` as `used_as` says. A function of the
    file that only this work calls has the lines from `inside_first` to `inside_last`.
    """

    kind: str
    at: str
    text: str
    num_runs: int | None
    last_line: int = 0
    name: str = ""
    where: str = ""
    used_at: str = ""
    used_as: str = ""
    inside_first: int = 0
    inside_last: int = 0
