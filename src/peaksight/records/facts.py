"""What a run showed beside its allocations: who holds blocks, and what its modules, optimizers and loaders are.

All of them are flat rows of tables in the capture file. A record of a real run has none (`Capture.observed` is False).
"""

from dataclasses import dataclass

from peaksight.records.phases import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A name of the script through which the block born at `born` could be reached at `tick`.

    `name` is an expression of the frame `where` (`train.py:main`): `outputs.hidden_states[3]`, `self.history[0]`. With
    `by_graph` it is the graph behind that tensor which holds the block, for a backward pass that may come.
    `shown_bytes` is how much of the block the tensor of that name shows: less than the block where it is a view.
    """

    tick: int
    step: int
    phase: Phase
    born: int
    name: str
    where: str
    shown_bytes: int
    by_graph: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFact:
    """A call of a module with parameters from outside of any other, as it returned: a pass through a model.

    `module` is its path, `training` its mode, `recorded` whether autograd recorded and a parameter of it
    needs a gradient; `input_needs_grad` tells whether a tensor that it was given does, `rows` is the first size of the
    first of them: how many samples it saw, 0 without a tensor. Its first allocation or free is at `first_tick` or
    later, its last at `last_tick`. `at` is the person's line that called it.
    """

    step: int
    module: str
    training: bool
    recorded: bool
    first_tick: int
    last_tick: int
    input_needs_grad: bool = False
    rows: int = 0
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardFact:
    """The backward pass `number`, counted as in `Allocation.backward`; `at` is the line that called it, after `tick`.

    `retains_graph` and `creates_graph` are what it was asked for.
    """

    number: int
    step: int
    tick: int
    at: str
    retains_graph: bool
    creates_graph: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveFact:
    """One collective of torch.distributed that a rank called, at the person's line `source` in `step`.

    Its `kind` tells of its operator where that is no sum, and of its root: `all_reduce by max`, `gather to rank 0`.
    `tensors` are those that it gave (`float32[64, 256]`), `group` the ranks that take part: `0-7`, `0-56:8` for every
    eighth, or one by one.
    """

    kind: str
    tensors: str
    group: str
    source: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TermFact:
    """One of several terms whose sum the backward pass `backward` began at, and whose graphs have nothing in common.

    Terms are in the order in which their last blocks were born. Of the blocks that a term saves, the first one after
    the term before was born at `first_born`.
    """

    backward: int
    first_born: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFact:
    """A module with parameters of its own, as it was at the last look.

    `module` is its path (FQN), `parameter_bytes` are those of its own parameters, `frozen_bytes` of those among them
    that need no gradient and had none at the last step of their optimizer, `idle_bytes` of those that an optimizer was
    given and that had no gradient at any of its steps. `num_elements` counts the numbers of those that no module before
    it has: tied ones once. The row without a path is of modules that were never called.
    """

    module: str
    parameter_bytes: int
    frozen_bytes: int
    idle_bytes: int = 0
    num_elements: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerFact:
    """One kind of parameter in one optimizer: rows differ in the dtype of the parameter, of its state, or in `frozen`.

    `optimizer` is its place among the optimizers that stepped, `kind` the name of its class, `how` the implementation
    that ran (`foreach`, `fused`, `for-loop`). `parameter_bytes`, `state_bytes` and `count` are those of these
    parameters, and `num_elements` is how many numbers they are; `frozen` ones need no gradient.
    """

    optimizer: int
    kind: str
    how: str
    dtype: str
    state_dtype: str
    frozen: bool
    count: int
    parameter_bytes: int
    state_bytes: int
    num_elements: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFact:
    """A batch that the DataLoader number `loader`, counted from 0, gave to the line `at` in the step `step`.

    What is made of it is born after `tick`, in a step that may be a later one where a library reads ahead.
    `batch_size` is how many samples the loader was asked for, 0 where nothing says it. `bytes` are those of all tensors
    in the batch, `shapes` are the dtypes and shapes of the largest of them, largest first: `float32[8, 3]; int64[8]`.
    `num_batches` is how many the loader gives until it has read all, 0 where it does not know.
    """

    tick: int
    step: int
    loader: int
    at: str
    batch_size: int
    bytes: int
    shapes: str
    num_batches: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFact:
    """Labels, `num_ignored` of `count` of which are ignored.

    They arrived from the host in the block born at `born`, or a loss read them and made it.
    """

    born: int
    count: int
    num_ignored: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsFact:
    """Who reads what a softmax over the last of three dimensions or more gave, in a forward pass, born at `born`.

    `callers` are the person's lines up the stack, the innermost first: `model.py:9 < train.py:30`. `read_share` is
    which part of it something read beside a batched product, 0.0 if nothing did, `reader` the line of the largest part.
    """

    born: int
    callers: str
    read_share: float
    reader: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFact:
    """A call of torch.utils.checkpoint, in the step `step`.

    `at` is the person's line, `module` the path of what runs inside (the running module where it is a function).
    `reentrant` is which kind. `input_needs_grad` tells whether any tensor argument did, `grad_enabled` whether autograd
    recorded at all. `first_tick` and `last_tick` enclose its forward, `recomputed_from` and `recomputed_to` what a
    backward pass ran again; both are 0 where none did.
    """

    step: int
    at: str
    module: str
    reentrant: bool
    input_needs_grad: bool
    grad_enabled: bool
    first_tick: int
    last_tick: int
    recomputed_from: int
    recomputed_to: int
