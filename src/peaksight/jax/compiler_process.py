"""The process that compiles for cards: takes orders on its standard input, and answers on its standard output.

Each order has a fork of its own, in which alone XLA is started: its crash, or its end where the host has no memory,
is an answer like any other. It is ended as soon as the memory is planned: kernels, which take as long again, are for a
card that is not there.
"""

import os
import pickle
import select
import signal
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from jax.experimental import topologies

from peaksight.jax.compiler import Answer, Order, first_line
from peaksight.jax.dump import is_written
from peaksight.jax.private import compile_module

POLL_SECONDS = 0.05


def main() -> None:
    """Serve until the input ends; what libraries print goes to the standard error."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            order = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_in_a_fork(order), out)
        out.flush()


def _in_a_fork(order: Order) -> Answer:
    """The answer of a fork of this process, or the code that it ended with."""
    read, write = os.pipe()
    process = os.fork()
    if not process:
        with suppress(BaseException), os.fdopen(write, "wb") as pipe:
            pickle.dump(answer_to(order), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        if is_planned := _has_planned(order, process, read):
            os.kill(process, signal.SIGKILL)
        given = b"" if is_planned else pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if order.num_devices == 1 and is_written(Path(order.folder)):
        return Answer()
    return pickle.loads(given) if given and not code else Answer(code=code or 1)


def _has_planned(order: Order, process: int, pipe: int) -> bool:
    """Wait until `process` has written its plan, or something is in `pipe`; only a plan for one device says all."""
    while not select.select([pipe], [], [], POLL_SECONDS)[0]:
        if order.num_devices == 1 and is_written(Path(order.folder)) and not _writes(process, order.folder):
            return True
    return False


def _writes(process: int, folder: str) -> bool:
    """Whether a file in `folder` is open in `process`; one that is not, and not empty, is written."""
    links, real = Path(f"/proc/{process}/fd"), os.path.realpath(folder)
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(links)
    return any(_target(links / name).startswith(real) for name in names)


def _target(link: Path) -> str:
    """Where `link` points to, empty where it is gone."""
    try:
        return os.readlink(link)
    except OSError:
        return ""


def answer_to(order: Order) -> Answer:
    """Compile `order`."""
    try:
        devices = topology_of(order.target, order.num_cards).devices
    except Exception as error:
        return Answer(error=first_line(error), is_missing=True)
    try:
        executable = compile_module(order.module, order.num_devices, devices, Path(order.folder), order.options)
        return Answer(shardings=tuple(executable.get_output_shardings() or ()))
    except Exception as error:
        return Answer(error=first_line(error))


@cache
def topology_of(target: str, num_cards: int = 1) -> Any:
    """The devices of `num_cards` cards, none of which need exist; an error of JAX's without the CUDA plugin."""
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    return topologies.get_topology_desc(platform="cuda", target_config=target, topology=f"1x1x{num_cards}")
