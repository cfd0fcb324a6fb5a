"""Packing padded sequences: the steps that as many sequences share are sliced, then put together.

Source: ATen/native/PackedSequence.cpp; H200, torch 2.11+cu130, 2026-11-28, benchmarks/operators ("layer recurrent").
"""

from itertools import groupby

import torch

from peaksight.virtual_gpu.kernels.temporaries import RESULTS, KernelCall, Rule, Temporaries

aten = torch.ops.aten


def _copied_slices(call: KernelCall) -> Temporaries:
    """A copy of each slice that is not contiguous, alive until they are put together."""
    padded, batch_first = call.argument("input"), call.argument("batch_first")
    time, batch, *rest = padded.stride()
    strides = (batch, time, *rest) if batch_first else (time, batch, *rest)
    slices = [(len(list(steps)), batch) for batch, steps in groupby(call.out[1].tolist())]
    shapes = [(*sizes, *padded.shape[2:]) for sizes in slices]
    copies = [_numel(shape) * padded.itemsize for shape in shapes if not _is_contiguous(shape, strides)]
    return (*copies, RESULTS, *(-num_bytes for num_bytes in copies))


def _numel(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return all(
        size == 1 or stride == _numel(shape[position + 1 :])
        for position, (size, stride) in enumerate(zip(shape, strides, strict=True))
    )


TEMPORARIES: dict[object, Rule] = {aten._pack_padded_sequence.default: _copied_slices}
