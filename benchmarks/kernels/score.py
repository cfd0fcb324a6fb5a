"""Compare the rules for workspaces of convolutions with what single calls took: `python -m benchmarks.kernels.score`.

Each file is one that a script beside this one wrote on a card. First calls under `cudnn.benchmark` have rows of their
own.
"""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmarks.tables import table
from peaksight.units import MIB
from peaksight.virtual_gpu.kernels import convolution_trials, cudnn_convolutions, cudnn_weight_gradients
from peaksight.virtual_gpu.kernels.convolution_problem import Convolution

FILES = (
    "usual_channels_h200",
    "network_layers_h200",
    "network_layers_again",
    "network_layers_fresh",
    "drawn_layers_h200",
    "drawn_layers_again",
)
PLANS = ("convolution_plans_h200", "convolution_plans_again", "convolution_plans_patches")
NUM_MULTIPROCESSORS = 132
# Of usual_channels.py, whose windows of that stride lie side by side.
LONGEST_STRIDE = 4
RESULTS = ("forward", "input", "weight")
Rule = Callable[[dict[str, Any], str], int]


def main() -> None:
    """Print a row for each file and result."""
    print(table(("measured", "result", "problems", "within 1 MiB", "MiB off in the mean"), _rows()))


def _rows() -> Iterator[tuple[str, ...]]:
    for name in FILES:
        calls = [call for call in map(_usual, _lines(name)) if call.get("kind") != "trials"]
        yield from _rows_of(name, calls, _predicted)
    for name in PLANS:
        yield from _rows_of_plans(name)
    known = [*_lines("network_layers_trials"), *(call for call in _lines("drawn_layers_h200") if "kind" in call)]
    yield from _rows_of("others, tried", [call for call in known if call.get("kind", "trials") == "trials"], _tried)


def _rows_of_plans(name: str) -> Iterator[tuple[str, ...]]:
    answered = [line for line in _lines(name) if "error" not in line.get("measured", line.get("tried", "error"))]
    measured = [
        line | {name: last for name, (_, last) in line["measured"].items()} for line in answered if "measured" in line
    ]
    tried = [line | {name: first for name, (first, _) in line["tried"].items()} for line in answered if "tried" in line]
    yield from _rows_of(name, measured, _predicted)
    yield from _rows_of(f"{name}, tried", tried, _tried)


def _lines(name: str) -> list[dict[str, Any]]:
    (file,) = Path(__file__).parent.glob(f"{name}_*.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def _rows_of(name: str, calls: list[dict[str, Any]], rule: Rule) -> Iterator[tuple[str, ...]]:
    for result in RESULTS:
        off = [abs(rule(call, result) - call[result]) for call in calls if call.get(result) is not None]
        if off:
            close = sum(num_bytes <= MIB for num_bytes in off) / len(off)
            yield name, result, f"{len(off):,}", f"{close:.0%}", f"{sum(off) / len(off) / MIB:.1f}"


def _usual(call: dict[str, Any]) -> dict[str, Any]:
    """`call` as the other files have it, where it is of a square window over a square image."""
    if "window" not in call:
        return call
    size, window, stride = call["size"], call["window"], call["stride"]
    padding = 0 if stride == LONGEST_STRIDE else (window - 1) // 2
    sides = {"x": [call["n"], call["c"], size, size], "w": [call["k"], call["c"], window, window]}
    steps = {"stride": [stride] * 2, "padding": [padding] * 2, "dilation": [1, 1], "groups": 1}
    return call | sides | steps


def _predicted(call: dict[str, Any], result: str) -> int:
    problem = problem_of(call)
    if result == "weight":
        return cudnn_weight_gradients.gradient_of_weight(problem, NUM_MULTIPROCESSORS)
    if problem.is_of_single_channels:
        return 0
    is_of_x = (result == "input") != call["transposed"]
    return (cudnn_convolutions.gradient_of_input if is_of_x else cudnn_convolutions.forward)(problem)


def _tried(call: dict[str, Any], result: str) -> int:
    """Of the first call under `cudnn.benchmark`."""
    problem = problem_of(call)
    if problem.is_of_single_channels:
        return 0
    if result == "weight":
        return max(_predicted(call, result), convolution_trials.gradient_of_weight(problem))
    is_of_x = (result == "input") != call["transposed"]
    trial = convolution_trials.gradient_of_input if is_of_x else convolution_trials.forward
    return max(_predicted(call, result), trial(problem))


def problem_of(call: dict[str, Any]) -> Convolution:
    """What cuDNN sees: the input of a transposed convolution is its `y`."""
    others = zip(call["x"][2:], call["w"][2:], *(call[name] for name in ("stride", "padding", "dilation")), strict=True)
    if call["transposed"]:
        shape = [call["x"][0], call["w"][1] * call["groups"]]
        shape += [(side - 1) * step - 2 * pad + gap * (size - 1) + 1 for side, size, step, pad, gap in others]
    else:
        shape = [call["x"][0], call["w"][0]]
        shape += [(side + 2 * pad - gap * (size - 1) - 1) // step + 1 for side, size, step, pad, gap in others]
    dtype = getattr(torch, call["dtype"])
    input, output, weight = (torch.empty(sides, dtype=dtype, device="meta") for sides in (call["x"], shape, call["w"]))
    return Convolution(
        x=output if call["transposed"] else input,
        y=input if call["transposed"] else output,
        weight=weight,
        stride=tuple(call["stride"]),
        dilation=tuple(call["dilation"]),
        groups=call["groups"],
        is_transposed=call["transposed"],
        is_channels_last=call["last"],
    )


if __name__ == "__main__":
    main()
