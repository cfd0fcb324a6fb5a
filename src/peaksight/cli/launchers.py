"""Reads the words of launchers with their own parsers, and says what rank 0 of their world would see.

Limitations:
    Of what `accelerate launch` can configure, DeepSpeed, Megatron-LM, TPUs and SageMaker are refused.
"""

import importlib
import io
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from typing import Any

from peaksight.errors import UnsupportedError, UsageError
from peaksight.virtual_gpu.ranks.world import DEFAULT_PORT, World

Words = tuple[str, ...]

# What only these can start: their own engines, or processes of another kind.
_FOR_EACH_CARD = ("gpu", "auto")
_REFUSED = {"use_deepspeed": "DeepSpeed", "use_megatron_lm": "Megatron-LM", "tpu": "TPUs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launcher starts: the words of a script, with `is_module` of a module, with `is_program` of a command.

    `environment` is what it sets for rank 0, `processes` how many it starts, for each card with `is_per_card`.
    """

    words: Words
    is_module: bool
    is_program: bool
    environment: dict[str, str]
    processes: int
    is_per_card: bool = False


def torchrun(words: Words) -> Launch:
    """`torchrun`, which is `python -m torch.distributed.run`."""
    return _by_torch("torch.distributed.run", words)


def torch_launch(words: Words) -> Launch:
    """`python -m torch.distributed.launch`, which by default hands the script its rank as an argument."""
    return _by_torch("torch.distributed.launch", words)


def _by_torch(module: str, words: Words) -> Launch:
    from torch.distributed.run import get_use_env, parse_min_max_nnodes

    with _complaints_of(module):
        args = importlib.import_module(module).parse_args(list(words))
        machines = parse_min_max_nnodes(args.nnodes)[1]
        per_machine = _processes_per_machine(args.nproc_per_node)
    rank = () if get_use_env(args) else ("--local-rank=0",)
    launch = _launch(args, _rank_0(args, World(0, machines * per_machine, per_machine)), machines * per_machine, rank)
    return replace(launch, is_per_card=args.nproc_per_node in _FOR_EACH_CARD)


def _processes_per_machine(value: str) -> int:
    """Of those that are counted by card, the one of a machine with one card; `cpu` trains on none."""
    if value in (*_FOR_EACH_CARD, "cpu"):
        return 1
    if not value.removeprefix("-").isdecimal():
        raise ValueError(f"{value!r} is no number of processes")
    if int(value) < 1:
        raise ValueError("they start no process")
    return int(value)


def _rank_0(args: Any, world: World) -> dict[str, str]:
    """What `LocalElasticAgent._start_workers` sets for the first worker; `args` are those of torchrun."""
    return world.variables | {
        "ROLE_NAME": args.role,
        "MASTER_ADDR": args.master_addr,
        "MASTER_PORT": str(args.master_port or DEFAULT_PORT),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(args.max_restarts),
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
    }  # fmt: skip


def accelerate(words: Words) -> Launch:
    """`accelerate launch`; its other commands run no script."""
    if words[:1] != ("launch",):
        raise UsageError(
            "Nothing to run: of the commands of accelerate, only `accelerate launch train.py` runs a script.",
            slug="nothing-to-run",
        )
    return accelerate_launch(words[1:])


def accelerate_launch(words: Words) -> Launch:
    """`accelerate launch` with its options and the configuration file that it finds."""
    with _complaints_of("accelerate launch"), _launcher_of_accelerate() as launch:
        args = launch.launch_command_parser().parse_args(list(words))
        asked = args.num_processes
        args, defaults, _ = _on_a_machine_that_has_them(launch, args)
        _refuse_engines(args, defaults)
        is_counted = asked is not None or getattr(defaults, "num_processes", None) is not None
        return replace(_started_by(launch, args), is_per_card=not is_counted and not args.cpu)


def _started_by(launch: Any, args: Any) -> Launch:
    """What the module `launch` of accelerate starts."""
    if not (args.multi_gpu or args.use_fsdp) or args.cpu:
        return _launch(args, _changes(launch.prepare_simple_launcher_cmd_env(args)[1]), 1)
    per_machine = args.num_processes // (args.num_machines or 1)
    if per_machine < 1:
        raise ValueError(f"{args.num_processes} as --num_processes leaves some of {args.num_machines} machines without")
    args.machine_rank = args.machine_rank or 0
    environment = _changes(launch.prepare_multi_gpu_env(args))
    world = World(0, args.num_processes, per_machine)
    return _launch(args, environment | _rank_0(_for_torchrun(launch, args), world), world.size)


@contextmanager
def _launcher_of_accelerate() -> Iterator[Any]:
    """The module `accelerate.commands.launch`, of which nothing is left but that it is imported.

    It sets up logging for its process, and imports libraries that look at their offline switches then.
    """
    from peaksight.virtual_gpu.script.environment import offline

    handlers = logging.root.handlers[:]
    try:
        with offline():
            yield importlib.import_module("accelerate.commands.launch")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"Can't read the options of `accelerate launch`: {error.name} is not installed here. Install it, "
            "or type: peaksight run train.py ARGS",
            slug="launcher",
        ) from error
    finally:
        logging.root.handlers[:] = handlers


def _on_a_machine_that_has_them(launch: Any, args: Any) -> Any:
    """Fill in what was not given, as on a machine with as many cards as processes were asked for."""
    from peaksight.overlays.patches import Patches

    num_cards = args.num_processes or 1
    with Patches() as patches:
        patches.set(launch.torch.cuda, "is_available", lambda: True)
        patches.set(launch.torch.cuda, "is_bf16_supported", lambda: True)
        patches.set(launch.torch.cuda, "device_count", lambda: num_cards)
        return launch._validate_launch_command(args)


def _refuse_engines(args: Any, defaults: Any) -> None:
    engine = next((engine for name, engine in _REFUSED.items() if getattr(args, name)), None)
    if getattr(defaults, "compute_environment", None) == "AMAZON_SAGEMAKER":
        engine = "SageMaker"
    if engine is not None and not args.cpu:
        raise UnsupportedError(
            f"Can't simulate `accelerate launch` for {engine}: only processes of PyTorch itself are simulated. "
            "For one rank without it, type: peaksight run train.py ARGS",
            slug="launcher",
        )


def _for_torchrun(launch: Any, args: Any) -> Any:
    """Those of accelerate's `args` that are torchrun's, with torchrun's own defaults for the others."""
    from torch.distributed.run import get_args_parser

    return launch._filter_args(args, get_args_parser(), ["--training_script", args.training_script])


def _changes(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if os.environ.get(name) != value}


def _launch(args: Any, environment: dict[str, str], processes: int, rank: Words = ()) -> Launch:
    return Launch(
        words=(args.training_script, *rank, *args.training_script_args),
        is_module=args.module,
        is_program=args.no_python,
        environment=environment,
        processes=processes,
    )


@contextmanager
def _complaints_of(launcher: str) -> Iterator[None]:
    """Raise what the parser of `launcher` would print before it exits, and what it would raise."""
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            yield
        return
    except SystemExit:
        complaint = said.getvalue().strip().rpartition("error: ")[2]
    except (ValueError, AssertionError, OSError, RuntimeError) as error:
        complaint = str(error)
    cause = complaint.rstrip(".") or "they start no script"
    raise UsageError(
        f"Can't read the options of {launcher}: {cause}. Compare with its --help.",
        slug="launcher-options",
    )


LAUNCHERS: dict[str, Callable[[Words], Launch]] = {
    "torchrun": torchrun,
    "accelerate": accelerate,
    "accelerate-launch": accelerate_launch,
}
LAUNCHER_MODULES: dict[str, Callable[[Words], Launch]] = {
    "torch.distributed.run": torchrun,
    "torch.distributed.launch": torch_launch,
    "accelerate.commands.launch": accelerate_launch,
    "accelerate.commands.accelerate_cli": accelerate,
}
