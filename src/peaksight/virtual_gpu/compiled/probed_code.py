"""Code of the person's that is compiled: PyTorch's compiler does not meet the probes in it.

What it was given counts as reached as a whole: see unreached/probes.py for what a probe is.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu.compiled.compiler import part
from peaksight.virtual_gpu.unreached.probes import Hits


def install(patches: Patches) -> None:
    """Hide the probes until `patches` is left."""
    module = part("torch._dynamo.bytecode_transformation")
    patches.set(module, "_cached_cleaned_instructions", _without_probes(module._cached_cleaned_instructions))


def _without_probes(read: Callable[..., Sequence[Any]]) -> Callable[..., Sequence[Any]]:
    def instructions_of(code: CodeType, safe: bool = False) -> Sequence[Any]:
        instructions = read(code, safe)
        if any(isinstance(constant, Hits) for constant in code.co_consts):
            return _blanked(instructions)
        return instructions

    return instructions_of


def _blanked(cached: Sequence[Any]) -> Sequence[Any]:
    """The instructions, of which those of a probe do nothing: it loads 1, the hits and an index, and stores."""
    module = part("torch._dynamo.bytecode_transformation")
    instructions = module._clone_instructions(cached)
    for position, instruction in enumerate(instructions):
        if isinstance(instruction.argval, Hits):
            instruction.argval[instructions[position + 1].argval] = 1
            for each in instructions[position - 1 : position + 3]:
                nothing = module.create_instruction("NOP")
                each.opcode, each.opname, each.arg, each.argval = nothing.opcode, "NOP", None, None
    module.update_offsets(instructions)
    module.devirtualize_jumps(instructions)
    return instructions
