"""What cuDNN's plans for a convolution take, asked of the library: no kernel runs.

A question is a line of network_layers.py: the shapes of an input and a weight, and how windows lie. The answer is the
list of Conv_v8.cpp (ATen/native/cudnn): the configurations of `CUDNN_HEUR_MODE_INSTANT`, then those of the fallback,
each finalized to a plan. The first plan runs; under `cudnn.benchmark` the largest workspace of all is allocated.

With the properties of a card, as a card's library tells them, no card is needed. Kernels that need one are left out.
"""

import ctypes
import json
import os
from collections.abc import Iterator, Sequence
from ctypes import byref, c_bool, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import torch

# Names of cudnn_graph.h without their prefix: kinds of descriptors, then of values, then attributes.
CONVOLUTION, ENGINE, ENGINECFG, ENGINEHEUR, PLAN, KNOB_CHOICE, GRAPH, TENSOR, DEVICEPROP = 1, 2, 3, 4, 5, 7, 15, 17, 38
HANDLE, DATA_TYPE, BOOLEAN, INT64, FLOAT, MODE, HEUR_MODE, KNOB_TYPE, NOTE, DESCRIPTOR, INT32, CHAR = (
    0, 1, 2, 3, 4, 7, 8, 9, 11, 15, 23, 24,
)  # fmt: skip
C_TYPES = {
    HANDLE: c_void_p, DATA_TYPE: c_int, BOOLEAN: c_bool, INT64: c_int64, FLOAT: c_float, MODE: c_int, HEUR_MODE: c_int,
    KNOB_TYPE: c_int, NOTE: c_int, DESCRIPTOR: c_void_p, INT32: c_int32,
}  # fmt: skip
DTYPES = {"float32": 0, "float16": 2, "bfloat16": 9}
# Descriptor of each operation, and its attributes for the convolution, w, x, y, alpha and beta.
OPERATIONS = {
    "forward": (10, (702, 703, 704, 705, 700, 701)),
    "weight": (11, (714, 715, 716, 717, 712, 713)),
    "input": (12, (708, 709, 710, 711, 706, 707)),
}
TURNED = {"forward": "input", "input": "forward", "weight": "weight"}
CROSS_CORRELATION, INSTANT, FALLBACK, DOWN_CONVERT_INPUTS = 1, 0, 2, 1
ALIGNMENT_BYTES = 16
MOST_KNOBS = 40


class CudnnError(Exception):
    """The library's own words."""


class Cudnn:
    """The library that torch loads, on the card of this machine or for the properties of one."""

    def __init__(self, device: dict[str, Any] | None = None) -> None:
        """Without `device` there must be a card."""
        self._lib, self._handle = _load(), c_void_p()
        if device is None:
            torch.zeros(1).cuda()
            self._check(self._lib.cudnnCreate(byref(self._handle)))
        self._device = self._properties(device) if device else None

    def _properties(self, device: dict[str, Any] | None) -> "_Descriptor":
        """Those given, or of the card."""
        properties = self._descriptor(DEVICEPROP)
        if device is None:
            self._set(properties, 2701, HANDLE, [self._handle.value])
        else:
            text = json.dumps(device).encode()
            size = c_int64(len(text))
            self._check(self._lib.cudnnBackendSetAttribute(properties.pointer, 2702, CHAR, size, c_char_p(text)))
        return self._finalize(properties)

    @property
    def version(self) -> int:
        """As 91900."""
        self._lib.cudnnGetVersion.restype = c_size_t
        return self._lib.cudnnGetVersion()

    def device(self) -> dict[str, Any]:
        """The properties of the card: what another machine asks with."""
        properties, size = self._device or self._properties(None), c_int64()
        get = self._lib.cudnnBackendGetAttribute
        self._check(get(properties.pointer, 2702, CHAR, c_int64(0), byref(size), None))
        text = ctypes.create_string_buffer(size.value + 1)
        self._check(get(properties.pointer, 2702, CHAR, size, byref(size), text))
        return json.loads(text.value)

    def plans(self, problem: dict[str, Any], result: str) -> Iterator[list[Any]]:
        """Each plan for `result`, one of forward, input and weight, as [engine, bytes, knobs, notes, is fallback].

        Bytes are None where the configuration can't be finalized.
        """
        graph = self._graph(problem, TURNED[result] if problem["transposed"] else result)
        for mode in (INSTANT, FALLBACK):
            for config in self._configurations(graph, mode):
                engine, notes = self._engine(config)
                if DOWN_CONVERT_INPUTS not in notes:
                    yield [engine, self._workspace(config), self._knobs(config), notes, mode == FALLBACK]

    def _graph(self, problem: dict[str, Any], result: str) -> "_Descriptor":
        x, w, y, stride, padding, dilation = _shapes(problem)
        convolution = self._descriptor(CONVOLUTION)
        for name, kind, values in (
            (100, DATA_TYPE, [DTYPES["float32"]]), (101, MODE, [CROSS_CORRELATION]), (102, INT64, dilation),
            (103, INT64, stride), (104, INT64, padding), (105, INT64, padding), (106, INT64, [len(stride)]),
        ):  # fmt: skip
            self._set(convolution, name, kind, values)
        number, (of_convolution, *of_tensors, alpha, beta) = OPERATIONS[result]
        operation = self._descriptor(number)
        self._set(operation, of_convolution, DESCRIPTOR, [self._finalize(convolution)])
        for name, uid, shape in zip(of_tensors, "wxy", (w, x, y), strict=True):
            self._set(operation, name, DESCRIPTOR, [self._tensor(shape, uid, problem)])
        self._set(operation, alpha, FLOAT, [1.0])
        self._set(operation, beta, FLOAT, [0.0])
        graph = self._descriptor(GRAPH)
        self._set(graph, 801, DESCRIPTOR, [self._finalize(operation)])
        if self._handle:
            self._set(graph, 800, HANDLE, [self._handle.value])
        return self._finalize(graph)

    def _tensor(self, shape: list[int], uid: str, problem: dict[str, Any]) -> "_Descriptor":
        tensor = self._descriptor(TENSOR)
        for name, kind, values in (
            (900, INT64, [ALIGNMENT_BYTES]), (901, DATA_TYPE, [DTYPES[problem["dtype"]]]), (902, INT64, shape),
            (903, INT64, _strides(shape, problem["last"])), (906, INT64, [ord(uid)]),
        ):  # fmt: skip
            self._set(tensor, name, kind, values)
        return self._finalize(tensor)

    def _configurations(self, graph: "_Descriptor", mode: int) -> "list[_Descriptor]":
        heuristics = self._descriptor(ENGINEHEUR)
        self._set(heuristics, 201, DESCRIPTOR, [graph])
        self._set(heuristics, 200, HEUR_MODE, [mode])
        if self._device:
            self._set(heuristics, 204, DESCRIPTOR, [self._device])
        self._finalize(heuristics)
        count = c_int64()
        get = self._lib.cudnnBackendGetAttribute
        self._check(get(heuristics.pointer, 202, DESCRIPTOR, c_int64(0), byref(count), None))
        return self._get_descriptors(heuristics, 202, ENGINECFG, count.value)

    def _engine(self, config: "_Descriptor") -> tuple[int, list[int]]:
        """The number of a configuration's engine, and the numerical notes on it."""
        (engine,) = self._get_descriptors(config, 300, ENGINE, 1)
        return self._get(engine, 1301, INT64, 1)[0], self._get(engine, 1303, NOTE, 10)

    def _knobs(self, config: "_Descriptor") -> dict[int, int]:
        choices = self._get_descriptors(config, 302, KNOB_CHOICE, MOST_KNOBS)
        return {self._get(each, 600, KNOB_TYPE, 1)[0]: self._get(each, 601, INT64, 1)[0] for each in choices}

    def _workspace(self, config: "_Descriptor") -> int | None:
        plan = self._descriptor(PLAN)
        try:
            if self._device:
                self._set(plan, 407, DESCRIPTOR, [self._device])
            else:
                self._set(plan, 400, HANDLE, [self._handle.value])
            self._set(plan, 401, DESCRIPTOR, [config])
            self._finalize(plan)
        except CudnnError:
            return None
        return self._get(plan, 402, INT64, 1)[0]

    def _descriptor(self, kind: int) -> "_Descriptor":
        descriptor = _Descriptor(self._lib)
        self._check(self._lib.cudnnBackendCreateDescriptor(kind, byref(descriptor.pointer)))
        return descriptor

    def _finalize(self, descriptor: "_Descriptor") -> "_Descriptor":
        self._check(self._lib.cudnnBackendFinalize(descriptor.pointer))
        return descriptor

    def _set(self, descriptor: "_Descriptor", name: int, kind: int, values: Sequence[Any]) -> None:
        descriptor.kept.append(values)
        raw = [value.pointer if kind == DESCRIPTOR else value for value in values]
        array = (C_TYPES[kind] * len(raw))(*raw)
        self._check(self._lib.cudnnBackendSetAttribute(descriptor.pointer, name, kind, c_int64(len(raw)), array))

    def _get(self, descriptor: "_Descriptor", name: int, kind: int, most: int) -> list[int]:
        count, array = c_int64(), (C_TYPES[kind] * most)()
        get = self._lib.cudnnBackendGetAttribute
        self._check(get(descriptor.pointer, name, kind, c_int64(most), byref(count), array))
        return list(array[: count.value])

    def _get_descriptors(self, descriptor: "_Descriptor", name: int, kind: int, most: int) -> "list[_Descriptor]":
        found = [self._descriptor(kind) for _ in range(most)]
        count, array = c_int64(), (c_void_p * most)(*(each.pointer for each in found))
        get = self._lib.cudnnBackendGetAttribute
        self._check(get(descriptor.pointer, name, DESCRIPTOR, c_int64(most), byref(count), array))
        return found[: count.value]

    def _check(self, status: int) -> None:
        if status:
            message = ctypes.create_string_buffer(1024)
            self._lib.cudnnGetLastErrorString(message, c_size_t(len(message)))
            raise CudnnError(f"{status} {message.value.decode()}")


class _Descriptor:
    """One of the backend's descriptors, and what it points to."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self.pointer, self.kept = c_void_p(), []
        self._lib = lib

    def __del__(self) -> None:
        self._lib.cudnnBackendDestroyDescriptor(self.pointer)


def _load() -> ctypes.CDLL:
    """The library that torch has loaded, or that of CUDNN_LIBRARY."""
    return ctypes.CDLL(os.environ.get("CUDNN_LIBRARY", "libcudnn.so.9"))


def _shapes(problem: dict[str, Any]) -> tuple[list[int], ...]:
    """x, w, y, stride, padding and dilation as cuDNN has them: two dimensions at least, turned if transposed."""
    x, w, *windows = (list(problem[name]) for name in ("x", "w", "stride", "padding", "dilation"))
    sides = zip(x[2:], w[2:], *windows, strict=True)
    if problem["transposed"]:
        y = [x[0], w[1] * problem["groups"]]
        y += [(side - 1) * step - 2 * pad + gap * (size - 1) + 1 for side, size, step, pad, gap in sides]
        x, y = y, x
    else:
        y = [x[0], w[0], *((n + 2 * pad - gap * (size - 1) - 1) // step + 1 for n, size, step, pad, gap in sides)]
    if len(w) == 3:
        x, w, y = ([*shape[:2], 1, shape[2]] for shape in (x, w, y))
        windows = [[one, *each] for one, each in zip((1, 0, 1), windows, strict=True)]
    return x, w, y, *windows


def _strides(shape: list[int], is_last: bool) -> list[int]:
    """Of a contiguous tensor, or one with channels last, with those of sides of one as `fixSizeOneDimStride` has."""
    order = [1, *range(len(shape) - 1, 1, -1), 0] if is_last else [*range(len(shape) - 1, -1, -1)]
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return strides
