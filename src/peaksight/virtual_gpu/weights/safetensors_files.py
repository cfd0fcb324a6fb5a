"""safetensors files: read by their own library, mapped, and on the card without data; written without data."""

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any

import torch

from peaksight.overlays.late_imports import change_modules
from peaksight.overlays.patches import Patches
from peaksight.records import Phase
from peaksight.virtual_gpu.tensors.followed import MAX_FLOAT_NUMEL
from peaksight.virtual_gpu.tensors.known import known_value
from peaksight.virtual_gpu.training.training_loop import TrainingLoop
from peaksight.virtual_gpu.weights.saving import Files, RealFiles

NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.float8_e8m0fnu: "F8_E8M0",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ", torch.complex64: "C64",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


class _Run:
    """The run that is on, if any, and the library's own functions.

    What stands for them stays in modules that took it by `from safetensors import ...`, and outlives the run there.
    """

    files: Files = RealFiles()
    loop: TrainingLoop | None = None
    safe_open: Callable[..., Any]
    save_file: Callable[..., None]
    save_model: Callable[..., None]


class SafeOpen:
    """`safetensors.safe_open`: what it gives on the CPU, mapped, then moved as the library moves it, one by one."""

    def __init__(self, filename: Any, framework: Any, device: Any = "cpu", **options: Any) -> None:
        """Open `filename`; see the library. Its other ways to read (`backend`) are not taken: they read."""
        options.pop("backend", None)
        self._device = device if framework in ("pt", "torch", "pytorch") else None
        on = "cpu" if self._device is not None else device
        self._file = _Run.safe_open(_Run.files.redirect_read(filename), framework, device=on, **options)

    def __getattr__(self, name: str) -> Any:
        """Names and metadata: those of the file."""
        return getattr(self._file, name)

    def __enter__(self) -> "SafeOpen":
        """Use it."""
        self._file.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        """Close it."""
        self._file.__exit__(*exc_info)

    def get_tensor(self, name: str) -> Any:
        """One tensor on the device asked for."""
        return self._moved(self._file.get_tensor(name))

    def get_tensors(self) -> dict[str, Any]:
        """All of them in the order of the file."""
        return {name: self.get_tensor(name) for name in self._file.offset_keys()}

    def get_slice(self, name: str) -> "SafeSlice":
        """One tensor of which parts can be taken."""
        return SafeSlice(self._file.get_slice(name), self._moved)

    def _moved(self, tensor: Any) -> Any:
        return tensor if self._device in (None, "cpu") else tensor.to(self._device)


class SafeSlice:
    """What `get_slice` gives."""

    def __init__(self, real: Any, move: Callable[[Any], Any]) -> None:
        """Parts of `real`, each put on its device by `move`."""
        self._real, self._move = real, move

    def __getattr__(self, name: str) -> Any:
        """`get_shape` and `get_dtype`."""
        return getattr(self._real, name)

    def __getitem__(self, index: Any) -> Any:
        """A part on the device asked for."""
        return self._move(self._real[index])


def save_file(tensors: Mapping[str, torch.Tensor], filename: Any, metadata: dict[str, Any] | None = None) -> None:
    """`safetensors.torch.save_file` without data."""
    if _Run.loop is None:
        return _Run.save_file(tensors, filename, metadata)
    with _Run.loop.within(Phase.SAVE):
        write_without_data(tensors, filename, metadata)


def write_without_data(
    tensors: Mapping[str, torch.Tensor], filename: Any, metadata: dict[str, Any] | None = None
) -> None:
    """A valid file: small values that are known, and for the rest zeros that no disk block holds."""
    with open(filename, "wb") as file:
        spans = list(_write_header(file, tensors, metadata))
        for tensor, (begin, _) in zip(tensors.values(), spans, strict=True):
            value = known_value(tensor)
            if value is not None and value.numel() <= MAX_FLOAT_NUMEL:
                file.seek(begin)
                packed = torch.empty(value.numel(), dtype=value.dtype).copy_(value.detach().flatten())
                file.write(bytes(packed.view(torch.uint8).tolist()))
        file.truncate(max((end for _, end in spans), default=file.tell()))


def save_model(model: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
    """`safetensors.torch.save_model`, in the phase of saving."""
    if _Run.loop is None:
        return _Run.save_model(model, *args, **kwargs)
    with _Run.loop.within(Phase.SAVE):
        _Run.save_model(model, *args, **kwargs)


def _write_header(
    file: Any, tensors: Mapping[str, torch.Tensor], metadata: dict[str, Any] | None
) -> Iterator[tuple[int, int]]:
    """Write names, dtypes, shapes and places; gives where in `file` the data of each tensor begin and end."""
    ends = list(accumulate((t.numel() * t.dtype.itemsize for t in tensors.values()), initial=0))
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    for (name, tensor), span in zip(tensors.items(), pairwise(ends), strict=True):
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    start = file.tell()
    return ((start + begin, start + end) for begin, end in pairwise(ends))


def install(patches: Patches, files: Files, loop: TrainingLoop) -> None:
    """Read and write safetensors files without data until `patches` is left."""
    patches.set(_Run, "files", files)
    patches.set(_Run, "loop", loop)

    def replace(module: ModuleType) -> None:
        for name, stand_in in (("safe_open", SafeOpen), ("save_file", save_file), ("save_model", save_model)):
            real = vars(module).get(name, stand_in)
            if real is not stand_in:
                setattr(_Run, name, staticmethod(real))
                patches.set_wherever_imported(name, stand_in, of=module, also_as=f"safe_{name}")

    change_modules(patches, {"safetensors": replace, "safetensors.torch": replace})
