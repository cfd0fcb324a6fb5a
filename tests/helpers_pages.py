"""A small training as a capture, for pages: layers whose activations, gradients and optimizer states come and go."""

from itertools import count

from helpers import allocation_of, capture_of, failure_of, step_of
from peaksight.diagnosis.diagnose import explained_report
from peaksight.gpus import find_card, room_on
from peaksight.records import Phase, Role
from peaksight.units import MIB

NUM_LAYERS, NUM_STEPS = 12, 3
ACTIVATION = "float32[8, 1024, 768]"
_STATE = {"phase": Phase.OPTIMIZER, "role": Role.OPTIMIZER_STATE, "source": "train.py:31"}


def report_of_training(*, fails=False):
    """The report of that training on a T4, which it fits unless it `fails` there."""
    whole = training_capture(activation_bytes=(1400 if fails else 400) * MIB)
    return explained_report([_failed(), whole] if fails else [whole], room_on(find_card("t4")))


def training_capture(*, activation_bytes):
    """Parameters first, then in each step a forward and its backward, and after the first one optimizer states."""
    clock, steps = count(1), []
    blocks = [_parameter(next(clock), layer) for layer in range(NUM_LAYERS)]
    for step in range(1, NUM_STEPS + 1):
        born = [next(clock) for _ in range(NUM_LAYERS)]
        began = next(clock)
        blocks += [
            _activation(at, next(clock), layer, step, activation_bytes) for layer, at in reversed([*enumerate(born)])
        ]
        blocks += [
            _block(200 * MIB, next(clock), layer, step=step, **_STATE) for layer in range(NUM_LAYERS) if step == 1
        ]
        steps.append(step_of(step, born[0], next(clock), backward_began=[began]))
    return capture_of(*blocks, steps=steps)


def _parameter(born, layer):
    return _block(100 * MIB, born, layer, phase=Phase.INIT, role=Role.PARAMETER, source="train.py:5")


def _activation(born, died, layer, step, num_bytes):
    line = f"train.py:{20 + layer % 3}"
    return _block(num_bytes, born, layer, died=died, step=step, source=line, tensor=ACTIVATION, op="aten::gelu")


def _block(num_bytes, born, layer, **about):
    return allocation_of(num_bytes, born=born, module=f"Model.layers.{layer}.mlp", **about)


def _failed():
    """The same on a card that is full in the first forward."""
    params = [_parameter(1 + layer, layer) for layer in range(NUM_LAYERS)]
    held = [_activation(13 + layer, None, layer, 1, 1400 * MIB) for layer in range(9)]
    taken = sum(block.allocated_bytes for block in params + held)
    about = {"source": "train.py:20", "message": "CUDA out of memory. Tried to allocate 1.37 GiB."}
    over = failure_of(1400 * MIB, tick=21, allocated_bytes=taken, reserved_bytes=taken, **about)
    return capture_of(*params, *held, failures=(over,), fatal=0, finished="failed", script_exit=1)


def numbers_in(value):
    """All integers anywhere in a value of JSON."""
    if isinstance(value, dict | list):
        return {
            number for part in (value.values() if isinstance(value, dict) else value) for number in numbers_in(part)
        }
    return {value} if isinstance(value, int) else set()
