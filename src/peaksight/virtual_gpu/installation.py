"""What makes torch believe in the cards: every patch of a simulation, in the order in which they go over each other."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from peaksight.overlays.patches import Patches
from peaksight.virtual_gpu import dynamo, threads, triton_kernels
from peaksight.virtual_gpu.answers import cuda_answers, data_parallel, memory_answers, profilers, torch_answers
from peaksight.virtual_gpu.compiled.compiling import Compiling
from peaksight.virtual_gpu.compiled.origins import Origins
from peaksight.virtual_gpu.kernels import (
    bitsandbytes,
    composites,
    convolution,
    fake_quantization,
    index_composites,
    recurrent,
    sparse,
    transformers,
)
from peaksight.virtual_gpu.kernels.comparisons import comparison_rules
from peaksight.virtual_gpu.kernels.dynamic_shapes import shape_rules
from peaksight.virtual_gpu.kernels.explicit_composites import explicit_rules
from peaksight.virtual_gpu.kernels.fake_kernels import fake_kernels
from peaksight.virtual_gpu.kernels.losses import loss_rules
from peaksight.virtual_gpu.kernels.recurrent_kernels import CudnnRecurrence
from peaksight.virtual_gpu.kernels.sparse_products import sparse_rules
from peaksight.virtual_gpu.ranks import distributed, meshes
from peaksight.virtual_gpu.ranks.collectives import in_ranges
from peaksight.virtual_gpu.script.other_processes import call_in_forked
from peaksight.virtual_gpu.tensors import copies, subclasses
from peaksight.virtual_gpu.tensors.device_requests import DeviceRequests
from peaksight.virtual_gpu.tensors.mode import VirtualGpuMode
from peaksight.virtual_gpu.tensors.operators import Operators
from peaksight.virtual_gpu.timing import waiting
from peaksight.virtual_gpu.torch_private import FakeTensorMode, dispatch_rule, find_torch_dispatch_rule
from peaksight.virtual_gpu.training import (
    backward,
    data_loading,
    generation,
    gradient_scaling,
    modules,
    optimizers,
    sampled_regions,
)
from peaksight.virtual_gpu.training.autocast import Autocast
from peaksight.virtual_gpu.training.modules import Parameters
from peaksight.virtual_gpu.weights import loading, pretrained, safetensors_files, saving

if TYPE_CHECKING:
    from peaksight.virtual_gpu.card import VirtualGpu

# What the card runs in place of an operator.
OpRules = dict[Any, Callable[..., Any]]


def install(patches: Patches, gpu: "VirtualGpu") -> None:
    """Put `gpu` in, until `patches` are taken back."""
    FakeTensorMode.cache_clear()  # DTensor asks it for results on the current card, which was another one before
    dynamo.install(patches)
    composite_rules = composites.composite_rules(gpu.rules, gpu.approximations.note)
    rules = _rules(gpu, composite_rules)
    mode, requests = _mode(gpu, rules), DeviceRequests()
    _install_answers(patches, gpu)
    _install_kernels(patches, gpu, composite_rules)
    bitsandbytes.install(patches, rules, gpu.approximations.note)
    _install_training(patches, gpu, mode, requests)
    _install_ranks(patches, gpu)
    _install_files(patches, gpu)
    _install_compiler(patches, gpu, requests)
    copies.install(patches)
    patches.set(find_torch_dispatch_rule, "__code__", dispatch_rule.__code__)
    subclasses.install(patches)
    threads.install(patches, mode, requests)
    call_in_forked(patches, gpu.become_fork)
    patches.enter_context(requests)
    patches.enter_context(mode)


def _rules(gpu: "VirtualGpu", composite_rules: OpRules) -> OpRules:
    steps = explicit_rules() | loss_rules() | comparison_rules() | index_composites.steps()
    steps |= fake_quantization.steps() | sparse.steps()
    return composite_rules | steps | transformers.transformer_rules(gpu.rules, gpu.approximations.note)


def _mode(gpu: "VirtualGpu", rules: OpRules) -> VirtualGpuMode:
    recurrence = CudnnRecurrence(gpu.rules, gpu.devices, gpu.approximations.note)
    shapes = shape_rules() | fake_kernels() | recurrence.fake_kernels()
    return VirtualGpuMode(gpu, Operators(rules, shapes, sparse_rules(), sparse.fake_kernels()))


def _install_answers(patches: Patches, gpu: "VirtualGpu") -> None:
    torch_answers.install(patches, gpu.devices, gpu.approximations, gpu.lines)
    cuda_answers.install(patches, gpu.room.card, gpu.rules, gpu.devices)
    memory_answers.install(patches, gpu.devices, gpu.room, gpu.failures.observers)
    data_parallel.install(patches, gpu.devices, gpu.approximations.note)
    profilers.install(patches)


def _install_kernels(patches: Patches, gpu: "VirtualGpu", composite_rules: OpRules) -> None:
    composites.install(patches, gpu.rules, composite_rules, gpu.approximations.note)
    transformers.install(patches)
    convolution.install(patches)
    recurrent.install(patches)
    triton_kernels.install(patches, partial(gpu.approximations.note, "triton-kernels"))


def _install_training(patches: Patches, gpu: "VirtualGpu", mode: VirtualGpuMode, requests: DeviceRequests) -> None:
    loop, witness, parameters = gpu.loop, gpu.witness, Parameters(gpu.devices, gpu.loop.modules)
    Autocast(patches, gpu.rules.torch)
    witness.install(patches)
    waiting.install(patches, gpu.stopwatch)
    modules.install(patches, mode, loop, parameters, witness)
    optimizers.install(patches, loop, parameters, gpu.optimizer_stepped)
    gradient_scaling.install(patches, partial(gpu.approximations.note, "skipped-steps", at_most_bytes=0))
    backward.install(patches, requests, loop, gpu.devices, parameters, witness.backward_begins, gpu.stopwatch)
    data_loading.install(patches, witness.loader_read, gpu.worst)
    generation.install(patches, partial(gpu.made_up, "token"))
    sampled_regions.install(patches)


def _install_compiler(patches: Patches, gpu: "VirtualGpu", requests: DeviceRequests) -> None:
    origins = Origins(gpu.lines, lambda: gpu.loop.module)
    compiling = Compiling(patches, requests, gpu.room.card.capability, gpu.lines, origins, gpu.approximations.note)
    patches.set(torch, "compile", compiling.compile)


def _install_ranks(patches: Patches, gpu: "VirtualGpu") -> None:
    def called(group: Any, kind: str, tensors: Any) -> None:
        gpu.collectives.called(group, kind, tensors)
        gpu.files.met(in_ranges(group.ranks), is_barrier=kind == "barrier")

    distributed.install(patches, gpu.devices, gpu.world, gpu.approximations.note, called, gpu.unrecorded)
    if dist.is_available():
        meshes.install(patches, gpu.world, gpu.lines)
    distributed.exchange_messages(patches, gpu.told.sent, gpu.approximations.note, gpu.unrecorded)


def _install_files(patches: Patches, gpu: "VirtualGpu") -> None:
    loading.install(patches, gpu.devices)
    saving.install(patches, gpu.files, gpu.loop, gpu.told.checkpoints)
    safetensors_files.install(patches, gpu.files, gpu.loop)
    pretrained.install(patches, gpu.approximations.note, gpu.loop)
