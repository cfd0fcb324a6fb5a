"""How many bytes cuDNN wants for recurrent layers: the reserve that backward reads, and the workspace of a kernel.

cuDNN says neither how it lays them out nor why. The formulas are fitted to 81,780 answers of
`cudnnGetRNNTempSpaceSizes` (H200, torch 2.11+cu130, cuDNN 9.19, 2026-11-28) for layers of up to 1,500 units, 1 to 6
deep, over 1 to 1,000 steps of 1 to 256 sequences, and give every one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peaksight.units import MIB
from peaksight.virtual_gpu.device_rules import DeviceRules

RELU, TANH, LSTM, GRU = range(4)
NUM_GATES = {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}
STANDARD, PERSIST_STATIC, PERSIST_SMALL = "standard", "persist-static", "persist-small"
ALIGNMENT_BYTES = 32
HEADER_BYTES = 256
BYTES_PER_LAYER = 8 * MIB
# Of each layer, in units of all its hidden states: what the reserve holds.
RESERVED = {RELU: (1,), TANH: (1,), LSTM: (4, 1), GRU: (6,)}
# Of each layer, in units of its hidden states of one step: what the workspace holds in forward, in backward, and in
# either with a persistent algorithm.
FORWARD_STATES = {RELU: (1,), TANH: (1,), LSTM: (4, 2), GRU: (3,)}
BACKWARD_STATES = {RELU: (1,), TANH: (1,), LSTM: (2, 1), GRU: (1,)}
PERSISTENT_STATES = {RELU: (2,), TANH: (2,), LSTM: (2, 2), GRU: (2,)}
PERSISTENT_BACKWARD = {RELU: 1, TANH: 1, LSTM: 4, GRU: 6}
PERSIST_STATIC_ROWS = 2432
GATED_STEPS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """Recurrent layers and their input: `num_rows` is the sum of the lengths of its sequences, padded or packed."""

    mode: int
    itemsize: int
    is_float16: bool
    input_size: int
    hidden_size: int
    proj_size: int
    num_layers: int
    num_directions: int
    batch: int
    steps: int
    num_rows: int
    is_packed: bool
    drops: bool

    @property
    def num_cells(self) -> int:
        """Layers, those of each direction for themselves."""
        return self.num_layers * self.num_directions

    @property
    def out_size(self) -> int:
        """The width of a hidden state."""
        return self.proj_size or self.hidden_size

    @property
    def all_states(self) -> int:
        """Elements of the hidden states of one layer and direction, over all steps."""
        return self.num_rows * self.hidden_size

    @property
    def matrices(self) -> int:
        """Elements of the weights without the biases."""
        later = self.num_directions * self.out_size
        widths = self.num_directions * (self.input_size + (self.num_layers - 1) * later)
        gates = NUM_GATES[self.mode] * self.hidden_size
        return gates * (widths + self.num_cells * self.out_size) + self.num_cells * self.hidden_size * self.proj_size

    def bytes_of(self, *numels: int) -> int:
        """Blocks of so many elements, one after the other."""
        return sum(_aligned(numel * self.itemsize) for numel in numels)


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def reserve_bytes(layers: Layers) -> int:
    """What forward keeps for backward in training: gates, cell states, what passes between layers, dropout's masks."""
    kept = [layers.num_cells * times * layers.all_states for times in RESERVED[layers.mode]]
    kept.append((layers.num_layers - 1) * layers.num_directions * layers.all_states)
    if layers.proj_size:
        kept += [layers.num_cells * layers.all_states, layers.num_cells * layers.num_rows * layers.proj_size]
    return HEADER_BYTES + layers.bytes_of(*kept) + layers.drops * _mask_bytes(layers)


def _mask_bytes(layers: Layers) -> int:
    """One bit an element of what passes from layer to layer, padding included."""
    bits = layers.steps * layers.batch * layers.out_size * layers.num_directions
    return (layers.num_layers - 1) * layers.num_directions * _aligned(-(-bits // 8))


def workspace_bytes(layers: Layers, algorithm: str, *, is_training: bool) -> int:
    """What a kernel takes and gives back; in training, what the hungrier of forward and backward needs."""
    needed = _forward_bytes(layers, algorithm)
    if is_training:
        needed = max(needed, _backward_bytes(layers, algorithm))
    lengths = 0 if layers.is_packed else _aligned(8 * layers.batch)
    weights = layers.bytes_of(layers.matrices)
    return BYTES_PER_LAYER * layers.num_cells + weights + HEADER_BYTES + lengths + needed


def _forward_bytes(layers: Layers, algorithm: str) -> int:
    gates, directions, all_states = NUM_GATES[layers.mode], layers.num_directions, layers.all_states
    if algorithm != STANDARD:
        blocks = [4 * gates * all_states, directions * gates * all_states]
        blocks += _states(layers, PERSISTENT_STATES, of_second_direction=1)
    else:
        gated = min(layers.num_rows, GATED_STEPS * layers.batch) * layers.hidden_size
        blocks = [gates * (gated if directions == 1 else 2 * all_states)]
        blocks += _states(layers, FORWARD_STATES, of_second_direction=2)
    if directions == 2:
        blocks.append(4 * all_states)
    elif layers.drops:
        blocks.append(all_states)
    return layers.bytes_of(*blocks, *_projected(layers), *_copies(layers))


def _backward_bytes(layers: Layers, algorithm: str) -> int:
    directions, is_deep, all_states = layers.num_directions, layers.num_layers > 1, layers.all_states
    between = directions * (1 + is_deep) * all_states
    if algorithm != STANDARD:
        rows = 8 * layers.num_rows
        if algorithm == PERSIST_STATIC:
            rows = max(rows, PERSIST_STATIC_ROWS + layers.batch)
        blocks = [between, rows * layers.hidden_size, PERSISTENT_BACKWARD[layers.mode] * all_states]
        blocks += _states(layers, PERSISTENT_STATES, of_second_direction=1)
    else:
        if directions == 1 and is_deep:
            between = min(layers.num_rows, _wave_steps(layers) * layers.batch) * layers.hidden_size
        blocks = [between, *_states(layers, BACKWARD_STATES, of_second_direction=2)]
    blocks.append(directions**2 * layers.num_rows * max(layers.input_size, layers.hidden_size))
    return layers.bytes_of(*blocks, *_projected(layers), *_copies(layers) * 2)


def _states(layers: Layers, per_cell: Mapping[int, Sequence[int]], *, of_second_direction: int) -> list[int]:
    times = (*per_cell[layers.mode], of_second_direction * (layers.num_directions - 1))
    return [each * layers.num_cells * layers.batch * layers.hidden_size for each in times]


def _wave_steps(layers: Layers) -> int:
    """Steps that are in flight at once where layers run one behind the other, in one direction.

    The limits lie between measured batches (8 and 12, 16 and 24, 96 and 128) and steps (100 and 128).
    """
    few = next(
        steps for batch, steps in ((1, 32), (8, 16), (16, 8), (96, 4), (layers.batch, 2)) if layers.batch <= batch
    )
    steps = max(few, 8) if layers.steps >= 128 else few
    return steps * layers.num_layers + max(steps, 8)


def _projected(layers: Layers) -> list[int]:
    """The hidden states before their projection."""
    return [layers.num_directions * layers.all_states] if layers.proj_size else []


def _copies(layers: Layers) -> list[int]:
    """Input, output, and first and last states of sequences that are padded, not packed."""
    if layers.is_packed:
        return []
    rows, cells = layers.num_rows, layers.num_cells * layers.batch
    states = [cells * layers.out_size, *([cells * layers.hidden_size] if layers.mode == LSTM else [])]
    return [rows * layers.input_size, rows * layers.num_directions * layers.out_size, *states * 2]


def algorithm(layers: Layers, rules: DeviceRules, *, is_forward: bool) -> str:
    """ATen/native/cudnn/RNN.cpp, `get_algo`; for bfloat16 cuDNN's workspace is that of the standard algorithm."""
    if layers.proj_size or layers.is_packed or not (layers.itemsize == 4 or layers.is_float16):
        return STANDARD
    limits = (384, 256) if layers.mode in (RELU, TANH) else (192, 128)
    if layers.hidden_size <= limits[0 if is_forward else 1]:
        return PERSIST_SMALL
    if layers.is_float16 and _is_for_persistence(layers) and _is_card_for_persistence(layers, rules):
        return PERSIST_STATIC
    return STANDARD


def _is_for_persistence(layers: Layers) -> bool:
    return (
        layers.num_cells == 1
        and layers.hidden_size <= 1024
        and layers.hidden_size % 128 == 0
        and layers.input_size % 128 == 0
    )


def _is_card_for_persistence(layers: Layers, rules: DeviceRules) -> bool:
    major, minor = rules.capability
    if major < 8 or minor == 6 or rules.multi_processor_count < 98 or layers.mode == GRU:
        return False
    is_slow = layers.mode != LSTM and layers.batch >= 96 and layers.hidden_size >= 896
    return layers.batch % 8 == 0 and layers.batch <= 128 and not is_slow
