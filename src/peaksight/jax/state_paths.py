"""Which argument is the state of which parameter, by their paths."""

import re
from collections.abc import Collection, Mapping

# A part of the path of what an optimizer or an average keeps for a parameter.
_STATE = re.compile(
    r"^(opt\w*|\w*optimizer\w*|tx|mu|nu|m|v|trace|momentum|velocity|\w*ema\w*|\w*average\w*|shadow\w*|inner_state\w*|"
    r"sum_of_squares|accumulator\w*|v_row|v_col|acc_grads)$"
)
# A parameter's own path begins with these many parts at most: `state.params['encoder']['w']`.
NUM_ROOTS = 2


def belongs_to(parameters: Collection[str], shapes: Mapping[str, str]) -> dict[str, str]:
    """For each of the paths in `shapes` that is state of one of `parameters`, that parameter.

    Both end alike, have the same shape, and a part of what is before says that it is state.
    """
    parts = {path: _parts(path) for path in shapes}
    owners = {}
    for path in shapes:
        if path in parameters:
            continue
        for parameter in parameters:
            if shapes[parameter] == shapes[path] and _is_state(parts[path], parts[parameter]):
                owners[path] = parameter
    return owners


def _parts(path: str) -> list[str]:
    return [part for part in re.findall(r"\w+", path) if part != "value"]


def _is_state(path: list[str], parameter: list[str]) -> bool:
    for num_roots in range(min(NUM_ROOTS, len(parameter) - 1) + 1):
        ending = parameter[num_roots:]
        before = path[: len(path) - len(ending)]
        if path[len(path) - len(ending) :] == ending and any(_STATE.match(part) for part in before):
            return True
    return False
