"""Failures of a script that a real run would not have had: what is missing here, in one sentence."""

import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence

from peaksight.errors import PeaksightError, ScriptError, UnsupportedError
from peaksight.virtual_gpu.script.network import refused_host
from peaksight.virtual_gpu.script.process_limit import MAX_PROCESSES, TooManyProcesses

# Packages with CUDA kernels of their own, by the name they are imported as, and how scripts go on without them.
_WITHOUT = {
    "apex": "use torch.amp, torch.optim with fused=True and torch's own norms instead",
    "bitsandbytes": "choose an optimizer of torch, and load the model without quantization",
    "causal_conv1d": "uninstall it, for the model has a path without it",
    "deepspeed": "simulate the script without its engine, on one rank",
    "flash_attn": 'choose attn_implementation="sdpa", which runs a flash kernel of PyTorch\'s own',
    "flash_attn_interface": 'choose attn_implementation="sdpa", which runs a flash kernel of PyTorch\'s own',
    "liger_kernel": "set use_liger_kernel=False",
    "mamba_ssm": "take the model's path without it, as transformers has one",
    "megatron": "simulate a model without it",
    "transformer_engine": "choose the layers of torch.nn",
    "triton": "take the path of the script without its kernels",
    "unsloth": "load the model with transformers",
    "xformers": "use torch's scaled_dot_product_attention",
}
_NO_SUCH_DEVICE = "invalid device ordinal", "Invalid device id"
_HUB_IS_OFF = {"OfflineModeIsEnabled", "LocalEntryNotFoundError"}


def explain(
    error: BaseException, refused_hosts: Sequence[str] = (), stand_in_at: str | None = None
) -> PeaksightError | None:
    """What a person can do about `error`, which ended the script; None where it is the script's own.

    `refused_hosts` are those that the script asked for in vain, in order; `stand_in_at` is the line that first read a
    value that no kernel computed.
    """
    chain = list(_chain(error))
    if any(type(link).__name__ == "OutOfMemoryError" for link in chain):
        return None
    return (
        _network_off(chain, refused_hosts)
        or _not_installed(chain)
        or _own_kernels(chain)
        or _too_many_processes(chain)
        or _too_few_gpus(chain)
        or _refused_before(refused_hosts)
        or _read_stand_ins(chain, stand_in_at)
    )


def explain_exit(files: list[str]) -> PeaksightError:
    """Why code in C has ended the process, called from `files`, innermost first."""
    package = next(filter(None, map(_package_of, reversed(files))), None)
    if package is not None:
        return _runs_own_kernels(package)
    return UnsupportedError(
        "No answer: C code that the script called has ended the process, as libraries do that find no card. "
        "Its last words are above; run the script without what it was to do.",
        slug="native-exit",
    )


def _network_off(chain: list[BaseException], refused_hosts: Sequence[str]) -> PeaksightError | None:
    hosts = ["huggingface.co" if _is_hub_off(error) else refused_host(error) for error in chain]
    hosts += [host for host in refused_hosts for error in chain if host in str(error)]
    host = next(filter(None, hosts), None)
    if host is None:
        return None
    return ScriptError(
        f"The script wanted something from {host}, and a simulated run is offline. "
        "Download it once without peaksight, then it is found on the disk.",
        slug="network-off",
    )


def _is_hub_off(error: BaseException) -> bool:
    """Libraries hide the cause behind an error of their own, which repeats its name."""
    return any(name in (type(error).__name__, *re.findall(r"\w+", str(error))) for name in _HUB_IS_OFF)


def _refused_before(hosts: Sequence[str]) -> PeaksightError | None:
    """A library that got nothing often goes on, and fails for want of it."""
    if not hosts:
        return None
    return ScriptError(
        f"Before it failed, the script wanted something from {', '.join(hosts)}, and a simulated run is offline. "
        "If it failed for want of that, download it once without peaksight.",
        slug="network-off",
    )


def _read_stand_ins(chain: list[BaseException], line: str | None) -> PeaksightError | None:
    """Whatever follows from a stand-in may be what failed, but for an exit that the script chose."""
    if line is None or any(isinstance(error, SystemExit) for error in chain):
        return None
    return ScriptError(
        f"Before it failed, the script read a value from the card at {line}, and no kernel has computed it: it got a "
        "stand-in (1.0, 1 or False). If it failed for that, give it the value in another way, such as an argument.",
        slug="values",
    )


def _not_installed(chain: list[BaseException]) -> PeaksightError | None:
    missing = next(filter(None, map(_missing_package, chain)), None)
    if missing is None:
        return None
    without = f", or {_WITHOUT[missing]}" if missing in _WITHOUT else ""
    return ScriptError(
        f"'{missing}' is not installed in {sys.prefix}, where peaksight runs, and a simulation imports what the script "
        f"imports. Install it there{without}.",
        slug="not-installed",
    )


def _missing_package(error: BaseException) -> str | None:
    """What could not be imported; libraries also say so in words: `... the package flash_attn seems to be not ...`."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return error.name.partition(".")[0]
    if isinstance(error, ImportError) and "install" in str(error):
        words = re.findall(r"\w+", str(error).replace("-", "_").replace("FlashAttention2", "flash_attn"))
        return next((name for name in _WITHOUT if name in words), None)
    return None


def _own_kernels(chain: list[BaseException]) -> PeaksightError | None:
    """Where the innermost frame is in one of those packages, its kernels found no card: the one that was called."""
    package = next(filter(None, map(_failing_package, chain)), None)
    return _runs_own_kernels(package) if package is not None else None


def _runs_own_kernels(package: str) -> PeaksightError:
    return UnsupportedError(
        f"'{package}' runs CUDA kernels of its own, which the virtual GPU cannot: their results have no known shapes. "
        f"To simulate the script, {_WITHOUT[package]}.",
        slug="own-kernels",
    )


def _too_few_gpus(chain: list[BaseException]) -> PeaksightError | None:
    if not any(text in str(error) for error in chain for text in _NO_SUCH_DEVICE):
        return None
    return ScriptError(
        "The script asked for a card beyond those of the run. Give the run as many as the script uses with --gpus N.",
        slug="too-few-gpus",
    )


def _too_many_processes(chain: list[BaseException]) -> PeaksightError | None:
    if not any(isinstance(error, TooManyProcesses) for error in chain):
        return None
    return ScriptError(
        f"The script had more than {MAX_PROCESSES} processes at a time, at which a simulated run stops it. "
        "Start fewer; workers of a DataLoader are not among them.",
        slug="too-many-processes",
    )


def _failing_package(error: BaseException) -> str | None:
    if isinstance(error, SystemExit) or error.__traceback__ is None:
        return None
    packages = [_package_of(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return next(filter(None, packages)) if packages[-1] else None


def _package_of(file: str) -> str | None:
    folders = file.split(os.sep)[:-1]
    return next((name for name in _WITHOUT if name in folders), None)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """`error`, and what it was raised from or while handling."""
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
