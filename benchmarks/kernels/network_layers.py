"""On a machine with a GPU: `python network_layers.py FILE SECONDS SEED [trials]` measures convolutions of networks.

The layers are those of torchvision's networks, and LISTED ones of generators, diffusion, speech and volumes, for
batches and types drawn once. A line of JSON for each: bytes beside the results in the forward and for either gradient;
with `trials` those of the first call under `cudnn.benchmark`, and as `chosen_forward` and so on those of later ones.
Under `peaksight run` it prints what the simulation gives, each after ROW.
"""

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from few_channels import workspace
from torch import nn

aten = torch.ops.aten
# Networks, and the pixels that they are trained on.
NETWORKS = {
    "resnet18": 224, "resnet50": 224, "resnext50_32x4d": 224, "vgg16": 224, "mobilenet_v3_large": 224,
    "efficientnet_b0": 224, "convnext_tiny": 224, "regnet_y_400mf": 224, "googlenet": 224, "shufflenet_v2_x1_0": 224,
    "fcn_resnet50": 512, "deeplabv3_mobilenet_v3_large": 512, "r3d_18": 112, "r2plus1d_18": 112, "resnet34": 640,
}  # fmt: skip
# Channels in and out, window, stride, padding, dilation, groups, pixels (a side, or lengths), transposed.
LISTED = (
    *((a, b, 3, 1, 1, 1, 1, (s, s), False) for a, b, s in (
        (4, 320, 64), (320, 320, 64), (640, 320, 64), (960, 320, 64), (320, 4, 64), (320, 640, 32), (640, 640, 32),
        (1280, 640, 32), (1920, 640, 32), (640, 1280, 16), (1280, 1280, 16), (2560, 1280, 16), (128, 128, 256),
        (128, 256, 128), (256, 256, 128), (512, 512, 64), (1, 64, 320), (64, 64, 320), (128, 64, 320), (128, 128, 160),
        (256, 128, 160), (1024, 512, 40), (512, 1024, 20), (160, 160, 32), (320, 320, 16), (640, 640, 8), (48, 48, 160),
        (96, 96, 80), (192, 192, 40), (288, 288, 20), (64, 64, 48), (64, 256, 96), (256, 36, 80), (256, 720, 40),
    )),
    *((a, a, 3, 2, 1, 1, 1, (s, s), False) for a, s in (
        (320, 64), (640, 32), (128, 256), (256, 128), (96, 160), (192, 80)
    )),
    *((a, b, 4, 2, 1, 1, 1, (s, s), False) for a, b, s in (
        (3, 64, 128), (64, 128, 64), (128, 256, 32), (256, 512, 16), (512, 512, 8)
    )),
    *((a, b, 4, 2, 1, 1, 1, (s, s), True) for a, b, s in (
        (512, 256, 8), (256, 128, 16), (128, 64, 32), (64, 3, 64), (100, 512, 4)
    )),
    *((a, b, 2, 2, 0, 1, 1, (s, s), True) for a, b, s in (
        (1024, 512, 20), (512, 256, 40), (256, 128, 80), (128, 64, 160)
    )),
    *((a, b, 1, 1, 0, 1, 1, (s, s), False) for a, b, s in (
        (320, 320, 64), (640, 640, 32), (1280, 1280, 16), (960, 320, 64), (64, 4, 320), (96, 96, 80), (240, 192, 40),
        (32, 32, 128), (64, 64, 64), (64, 128, 64), (128, 1, 128), (48, 96, 160),
    )),
    *((256, 256, k, 1, (k - 1) // 2 * d, d, 1, (2048,), False) for k in (3, 7, 11) for d in (1, 3, 5)),
    *((a, b, k, s, (k - s) // 2, 1, 1, (n,), True) for a, b, k, s, n in (
        (512, 256, 16, 8, 32), (256, 128, 16, 8, 256), (128, 64, 4, 2, 2048)
    )),
    (80, 512, 7, 1, 3, 1, 1, (400,), False), (512, 512, 3, 2, 1, 1, 1, (3000,), False),
    (80, 768, 3, 1, 1, 1, 1, (3000,), False),
    (256, 256, 31, 1, 15, 1, 256, (600,), False), (1024, 1024, 4, 1, 3, 1, 1024, (1024,), False),
    (1, 512, 10, 5, 0, 1, 1, (32000,), False),
    (8, 64, 7, 1, 3, 1, 1, (4096,), False), (64, 64, 3, 1, 1, 1, 1, (2048,), False),
    *((a, b, 3, 1, 1, 1, 1, (s, s, s), False) for a, b, s in (
        (1, 32, 64), (32, 32, 64), (32, 64, 32), (64, 64, 32), (128, 128, 16), (64, 32, 64)
    )),
    *((a, b, 2, 2, 0, 1, 1, (s, s, s), True) for a, b, s in ((128, 64, 16), (64, 32, 32))),
    *((n * a, n * b, k, 1, k // 2, 1, n, (s, s), False) for n in (8, 16) for a, b, k, s in (
        (512, 512, 3, 16), (256, 128, 3, 32), (64, 64, 3, 64), (128, 3, 1, 64),
    )),
    (4, 32, 8, 4, 0, 1, 1, (84, 84), False), (32, 64, 4, 2, 0, 1, 1, (20, 20), False),
    (64, 64, 3, 1, 0, 1, 1, (9, 9), False),
    (3, 768, 16, 16, 0, 1, 1, (224, 224), False), (3, 96, 4, 4, 0, 1, 1, (224, 224), False),
    (3, 64, 7, 4, 3, 1, 1, (512, 512), False),
    (3, 1024, 14, 14, 0, 1, 1, (336, 336), False),
)  # fmt: skip
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
TYPES = (torch.float32, torch.float16, torch.bfloat16)
MOST_ELEMENTS = 2**27
SAMPLES = 6


def layers_of(name: str, pixels: int) -> Iterator[tuple]:
    """The convolutions of one of torchvision's networks, as LISTED has them."""
    import torchvision

    found = []
    options = {"weights_backbone": None} if pixels == 512 else {}
    network = torchvision.models.get_model(name, weights=None, **options).eval().to("meta")
    for module in network.modules():
        if isinstance(module, nn.Conv2d | nn.Conv3d):
            module.register_forward_hook(lambda conv, inputs, _: found.append((conv, tuple(inputs[0].shape[2:]))))
    frames = (16,) if name.startswith("r") and name.endswith("d_18") else ()
    network(torch.empty(2, 3, *frames, pixels, pixels, device="meta"))
    for conv, shape in found:
        yield (
            conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, conv.dilation,
            conv.groups, shape, False
        )  # fmt: skip


def problems(seed: int) -> list[tuple]:
    """Every layer a few times: a batch, a type, whether channels come last."""
    layers = dict.fromkeys([*LISTED, *(layer for each in NETWORKS.items() for layer in layers_of(*each))])
    draw = random.Random(seed)
    drawn = []
    for layer in layers:
        for _ in range(SAMPLES):
            batch = 1 if layer[6] in (8, 16) and layer[0] % layer[6] == 0 and layer in LISTED else draw.choice(BATCHES)
            elements = batch * max(layer[0], layer[1]) * torch.Size(layer[7]).numel()
            if elements <= MOST_ELEMENTS:
                drawn.append((batch, *layer, draw.choice(TYPES), len(layer[7]) == 2 and draw.random() < 0.35))
    drawn = list(dict.fromkeys(drawn))
    draw.shuffle(drawn)
    return drawn


def measure(problem: tuple, with_trials: bool) -> dict[str, object]:
    """One problem, which no call before had: what cuDNN chose is kept."""
    row, calls = prepared(problem)
    for name, call in calls.items():
        row[name] = (first_workspace if with_trials else workspace)(call)
        if with_trials:
            row[f"chosen_{name}"] = workspace(call)
    return row


def prepared(problem: tuple) -> tuple[dict[str, object], dict[str, Callable[[], object]]]:
    """What a line tells of a problem, and the calls that make its results, forward first."""
    batch, channels, filters, *window, groups, shape, transposed, dtype, is_last = problem
    kernel, stride, padding, dilation = (list(n) if isinstance(n, tuple) else [n] * len(shape) for n in window)
    layout = torch.channels_last if is_last else torch.contiguous_format
    sides = (channels, filters // groups) if transposed else (filters, channels // groups)
    x = torch.ones(batch, channels, *shape, device="cuda", dtype=dtype).to(memory_format=layout)
    weight = torch.ones(*sides, *kernel, device="cuda", dtype=dtype).to(memory_format=layout)
    options = (stride, padding, dilation, transposed, [0] * len(shape), groups)
    row = {
        "x": list(x.shape), "w": list(weight.shape), "stride": stride, "padding": padding, "dilation": dilation,
        "groups": groups, "transposed": transposed, "dtype": str(dtype).removeprefix("torch."), "last": is_last,
    }  # fmt: skip
    made: list[torch.Tensor] = []

    def forward() -> object:
        made.clear()
        made[:] = [aten.convolution(x, weight, None, *options)]
        return made

    def backward(*mask: bool) -> object:
        return aten.convolution_backward(made[0], x, weight, [0], *options, [*mask, False])

    calls = {"forward": forward, "input": lambda: backward(True, False), "weight": lambda: backward(False, True)}
    return row, calls


def first_workspace(run: Callable[[], object]) -> int:
    """Bytes that a call takes beside its results."""
    torch.cuda.reset_peak_memory_stats()
    results = run()
    peak = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
    del results
    return peak


if __name__ == "__main__":
    path, end = Path(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    torch.backends.cudnn.benchmark = with_trials = "trials" in sys.argv[4:]
    with path.open("w") as file:
        for number, problem in enumerate(problems(int(sys.argv[3]))):
            line = json.dumps(measure(problem, with_trials))
            print(f"ROW {line}")
            file.write(f"{line}\n")
            if number % 32 == 0:
                torch.cuda.empty_cache()
            if time.monotonic() > end:
                break
