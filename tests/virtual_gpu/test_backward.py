"""The backward pass: what is saved, when it is freed, and whose lines its blocks carry."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import _len_torch_function_stack
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from peaksight.records import Phase, Role

from .cards import births_on, by_role, peak_of, requested

pytestmark = pytest.mark.torch

SIDE = 64
MATRIX = SIDE * SIDE * 4


def x(**options):
    """A matrix of 16,384 bytes on the card."""
    return torch.randn(SIDE, SIDE, device="cuda", **options)


def stack(depth, *, dropout=0.0):
    """`depth` layers with an activation each."""
    layers = [nn.Sequential(nn.Linear(SIDE, SIDE), nn.GELU(), nn.Dropout(dropout)) for _ in range(depth)]
    return nn.Sequential(*layers).cuda()


def test_saved_tensors_are_freed_as_backward_runs(virtual_gpu):
    """Each exponential saves its result: a node adds its gradient before what it saved and was given is freed."""
    value = leaf = x(requires_grad=True)
    for _ in range(4):
        value = value.exp()
    loss = value.sum()
    del value
    before = torch.cuda.memory_allocated()
    peak = peak_of(virtual_gpu, loss.backward)

    assert (1 + 4) * MATRIX + 512 == before
    assert 512 + MATRIX == peak
    assert 2 * MATRIX + 512 == torch.cuda.memory_allocated()
    assert leaf.grad is not None


def test_retain_graph(virtual_gpu):
    """A retained graph keeps what it saved, and can run again."""
    leaf = x(requires_grad=True)
    loss = leaf.exp().sum()
    loss.backward(retain_graph=True)
    kept = torch.cuda.memory_allocated()
    loss.backward()

    assert kept - MATRIX == torch.cuda.memory_allocated()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_no_grad_saves_nothing(virtual_gpu):
    """Without gradients a chain holds one matrix beside its input, two while it computes."""
    value = x(requires_grad=True)

    def run():
        with torch.no_grad():
            out = value
            for _ in range(4):
                out = out.exp()

    assert 2 * MATRIX == peak_of(virtual_gpu, run)


def test_first_gradient_is_taken_over(virtual_gpu):
    """The first gradient of a parameter is kept as it is; the second is added to it and freed.

    Beside them lies the copy of an expanded gradient, which the product reads.
    """
    layer = nn.Linear(SIDE, SIDE, bias=False).cuda()
    sizes = []
    for _ in range(2):
        out = layer(x()).sum()
        with births_on(virtual_gpu) as births:
            out.backward()
        sizes.append([b for b in births if b.requested_bytes == MATRIX and b.role is not Role.WORKSPACE])

    assert [1, 1] == [len(births) for births in sizes]
    assert [None, MATRIX] == [sizes[0][0].died, by_role(virtual_gpu, Role.GRADIENT)]
    assert sizes[1][0].died is not None


def test_shared_gradient_is_cloned(virtual_gpu):
    """A gradient that somebody else holds is cloned: the sum's gradient goes to both parameters."""
    left, right = nn.Parameter(x()), nn.Parameter(x())
    out = left + right
    with births_on(virtual_gpu) as births:
        out.backward(x())

    assert [MATRIX] * 3 == requested(births)
    assert left.grad.untyped_storage()._cdata != right.grad.untyped_storage()._cdata


def test_gradients_have_their_role(virtual_gpu):
    """Gradients of parameters are gradients, of the module that owns the parameter."""
    model = stack(2)
    model(x()).sum().backward()
    births = [birth for birth in virtual_gpu.ledger.births if birth.role is Role.GRADIENT]

    assert {MATRIX, SIDE * 4} == set(requested(births))
    assert {"Sequential.0.0", "Sequential.1.0"} == {birth.module for birth in births}
    assert {Phase.BACKWARD} == {birth.phase for birth in births}


def test_autograd_grad(virtual_gpu):
    """`autograd.grad` returns gradients that belong to the backward phase and accumulates nothing."""
    leaf = x(requires_grad=True)
    loss = leaf.exp().sum()
    with births_on(virtual_gpu) as births:
        (grad,) = torch.autograd.grad(loss, leaf)

    assert leaf.grad is None
    assert grad.is_cuda
    assert {Phase.BACKWARD} == {birth.phase for birth in births if birth.op != "aten::ones_like"}


def test_gradient_penalty(virtual_gpu):
    """`create_graph` keeps the gradient's graph, and a second backward runs through it."""
    model, batch = nn.Sequential(nn.Linear(SIDE, SIDE), nn.Tanh()).cuda(), x(requires_grad=True)
    (grad,) = torch.autograd.grad(model(batch).sum(), batch, create_graph=True)
    (grad.norm() - 1).pow(2).backward()

    assert grad.requires_grad
    assert model[0].weight.grad.is_cuda


def last_line(function):
    """The number of the last line of `function`."""
    lines, first = inspect.getsourcelines(function)
    return first + len(lines) - 1


class Cube(torch.autograd.Function):
    """Saves its input."""

    @staticmethod
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value**3

    @staticmethod
    def backward(ctx, grad):
        (value,) = ctx.saved_tensors
        return 3 * value**2 * grad


def test_custom_function(virtual_gpu):
    """What a custom function saves stays until its backward ran, and its backward is backward."""
    leaf = x(requires_grad=True)
    value = leaf * 1
    out = Cube.apply(value).sum()
    del value
    before = torch.cuda.memory_allocated()
    with births_on(virtual_gpu) as births:
        out.backward()

    assert 2 * MATRIX + 512 == before
    assert {Phase.BACKWARD} == {birth.phase for birth in births if birth.op != "aten::ones_like"}
    assert 2 * MATRIX + 512 == torch.cuda.memory_allocated()


def test_hooks(virtual_gpu):
    """Hooks of tensors, parameters and modules run and may replace gradients."""
    layer = nn.Linear(SIDE, SIDE, bias=False).cuda()
    seen = []
    layer.weight.register_hook(lambda grad: seen.append("tensor") or grad * 2)
    layer.weight.register_post_accumulate_grad_hook(lambda parameter: seen.append("accumulated"))
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: seen.append("module"))
    layer.register_forward_hook(lambda module, args, out: seen.append("forward"))
    layer(x(requires_grad=True)).sum().backward()

    assert "forward" == seen[0]
    assert {"forward", "tensor", "accumulated", "module"} == set(seen)


def test_optimizer_in_backward(virtual_gpu):
    """A gradient dropped by a post-accumulate hook is freed before the next one is there."""
    model = nn.Sequential(*(nn.Linear(SIDE, SIDE, bias=False) for _ in range(4))).cuda()

    def drop(parameter):
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(drop)
    model(x()).sum().backward()

    assert 0 == by_role(virtual_gpu, Role.GRADIENT)


def test_saved_tensor_hooks(virtual_gpu):
    """`save_on_cpu` moves what is saved to the host: the forward ends with its input and its result."""
    leaf = x(requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        out = leaf.exp().exp().sum()

    assert MATRIX + 512 == torch.cuda.memory_allocated()

    out.backward()

    assert leaf.grad.is_cuda


def test_detach_and_accumulate_losses(virtual_gpu):
    """A loss kept with its graph keeps everything; a detached one only its block."""
    leaf = x(requires_grad=True)
    kept = [leaf.exp().sum() for _ in range(2)]
    held = torch.cuda.memory_allocated()
    kept = [loss.detach() for loss in kept]

    assert 3 * MATRIX + 2 * 512 == held
    assert MATRIX + 2 * 512 == torch.cuda.memory_allocated()
    assert all(not loss.requires_grad for loss in kept)


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_checkpointing(virtual_gpu, use_reentrant, dropout):
    """A checkpointed block keeps its input and result only, and gives the same gradients."""
    model = stack(3, dropout=dropout)
    batch = x(requires_grad=True)
    before = torch.cuda.memory_allocated()
    value = batch
    for block in model:
        value = checkpoint(block, value, use_reentrant=use_reentrant)
    workspaces = sum(b.allocated_bytes for b in virtual_gpu.ledger.births if b.role is Role.WORKSPACE)

    assert 3 * MATRIX == torch.cuda.memory_allocated() - before - workspaces

    value.sum().backward()

    assert all(parameter.grad is not None for parameter in model.parameters())
    assert batch.grad.is_cuda


def test_recomputation_is_said(virtual_gpu):
    """What backward recomputes belongs to its phase, with autograd recording, and to the block's modules.

    The activation is not computed again: its backward needs only what the layer returned.
    """
    model = stack(1)
    out = checkpoint(model, x(requires_grad=True), use_reentrant=False)
    with births_on(virtual_gpu) as births:
        out.sum().backward()
    recomputed = [birth for birth in births if birth.grad_enabled and birth.phase is Phase.BACKWARD]

    assert {"Sequential.0.0"} == {birth.module for birth in recomputed}


def test_checkpointing_takes_the_forward_s_kernels(virtual_gpu):
    """Recomputation takes the same attention and dropout as its forward did."""
    layer = nn.TransformerEncoderLayer(SIDE, 2, SIDE, batch_first=True).cuda()
    batch = torch.randn(2, 16, SIDE, device="cuda", requires_grad=True)
    ops = []
    with births_on(virtual_gpu) as births, torch.autocast("cuda", torch.bfloat16):
        out = checkpoint(layer, batch, use_reentrant=False)
    ops.append([birth.op for birth in births])
    with births_on(virtual_gpu) as births:
        out.sum().backward()
    ops.append([birth.op for birth in births])

    for op in ("aten::native_dropout", "aten::addmm", "aten::native_layer_norm"):
        assert ops[0].count(op) == ops[1].count(op) > 0
    assert sum("attention" in op and "backward" not in op for op in ops[0]) == sum(
        "attention" in op and "backward" not in op for op in ops[1]
    )


def test_checkpoint_sequential(virtual_gpu):
    """torch's own segmentation works."""
    batch = x(requires_grad=True)
    checkpoint_sequential(stack(4), 2, batch, use_reentrant=False).sum().backward()

    assert batch.grad.is_cuda


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_device_requests_in_recomputation(virtual_gpu, use_reentrant):
    """A forward that asks for the card can be recomputed, though torch turns function modes off in backward."""
    num_modes = []

    def forward(value):
        num_modes.append(_len_torch_function_stack())
        return value * torch.arange(SIDE, device="cuda") + torch.ones(SIDE).cuda() + torch.tensor(1.0, device="cuda")

    batch = x(requires_grad=True)
    checkpoint(forward, batch, use_reentrant=use_reentrant).sum().backward()

    assert [1, 1] == num_modes
    assert batch.grad.is_cuda


def test_lines_of_backward(virtual_gpu):
    """A block of backward carries the line and module of its forward."""
    layer = nn.Linear(SIDE, SIDE).cuda()
    out = layer(x(requires_grad=True))
    forward = virtual_gpu.ledger.births[-1]
    activated = out.exp()
    exponential = virtual_gpu.ledger.births[-1]
    with births_on(virtual_gpu) as births:
        activated.sum().backward()
    product = next(birth for birth in births if birth.op == "aten::mm")
    chain = next(birth for birth in births if birth.op == "aten::mul.Tensor")

    assert (forward.lines.source, "Linear") == (product.lines.source, product.module)
    assert (exponential.lines.source, "") == (chain.lines.source, chain.module)
    assert forward.lines.source != exponential.lines.source


def test_own_lines_inside_of_backward(virtual_gpu):
    """What the person's code makes in a custom backward or a hook carries its own line, with the module's name."""
    layer = nn.Linear(SIDE, SIDE, bias=False).cuda()
    here = inspect.currentframe().f_lineno
    layer.weight.register_hook(lambda grad: grad.exp())
    loss = Cube.apply(layer(x())).sum()
    with births_on(virtual_gpu) as births:
        loss.backward()
    lines = {birth.op: birth.lines.source for birth in births}
    modules = {birth.op: birth.module for birth in births}

    assert lines["aten::exp"].endswith(f"test_backward.py:{here + 1}")
    assert lines["aten::pow.Tensor_Scalar"].endswith(f"test_backward.py:{last_line(Cube.backward)}")
    assert modules["aten::exp"] == "Linear"


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_who_called_backward(virtual_gpu, use_reentrant):
    """The line of the script, also for what the person's code recomputes inside of it."""
    callers = []

    def forward(value):
        if torch._C._current_graph_task_id() != -1:
            callers.append(virtual_gpu.lines.calling_backward())
        return value.exp()

    loss = checkpoint(forward, x(requires_grad=True), use_reentrant=use_reentrant).sum()
    here = inspect.currentframe().f_lineno
    loss.backward()

    assert len(callers) == 1
    assert callers[0].endswith(f"test_backward.py:{here + 1}")
    assert virtual_gpu.lines.calling_backward() == ""


def test_accumulation(virtual_gpu):
    """Gradient accumulation adds in place: the second micro-batch peaks at one incoming gradient."""
    model = nn.Linear(SIDE, SIDE, bias=False).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(4):
        F.mse_loss(model(x()), x()).div(4).backward()
    held = by_role(virtual_gpu, Role.GRADIENT)
    optimizer.step()

    assert MATRIX == held
    assert 2 == virtual_gpu.loop.step


def test_functional_transforms(virtual_gpu):
    """`torch.func.grad` and `vmap` of a function run."""
    weight, batch = x(), x()
    loss = torch.func.vmap(torch.func.grad(lambda w, b: (w @ b).sum()), in_dims=(None, 0))(weight, batch)

    assert (SIDE, SIDE, SIDE) == tuple(loss.shape)


def test_saved_on_cpu(virtual_gpu):
    """What is saved for the backward lies on the host, pinned, and comes back for it."""
    layers = stack(4)
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = layers(x()).sum()
    kept = torch.cuda.memory_allocated()
    loss.backward()

    assert kept < torch.cuda.max_memory_allocated()
    assert layers[0][0].weight.grad.is_cuda


def test_hooks_of_saved_tensors(virtual_gpu):
    """They see tensors on the card, and may make others there."""
    seen = []

    def pack(tensor):
        seen.append(tensor.device)
        return tensor.to("cuda", torch.float16)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed.float()):
        x(requires_grad=True).exp().sum().backward()

    assert {torch.device("cuda:0")} == set(seen)


def test_forward_mode(virtual_gpu):
    """Tangents that are zero have no memory, and no values that could be looked at."""
    layer = nn.Linear(SIDE, SIDE).cuda()
    value = x()
    _, tangent = torch.func.jvp(layer, (value,), (torch.ones_like(value),))
    tangent.sum().backward()

    assert layer.weight.shape == layer.weight.grad.shape


def test_what_a_pass_records_runs_after_earlier_forwards(virtual_gpu):
    """The engine's thread numbers it from its own first node, not after those of the script."""
    leaf, order = x(requires_grad=True), []
    early = leaf
    for _ in range(6):
        early = early.sin()
    (gradient,) = torch.autograd.grad(leaf.exp().sum(), leaf, create_graph=True)
    early.register_hook(lambda _: order.append("early"))
    gradient.register_hook(lambda _: order.append("recorded"))
    (gradient.square().sum() + early.sum()).backward()

    assert ["early", "recorded"] == order


def test_what_later_passes_record_follows_what_earlier_ones_did(virtual_gpu):
    """They have higher numbers, also than forty of the first pass."""
    leaf, order = x(requires_grad=True), []
    value = leaf
    for _ in range(40):
        value = value.exp()
    (first,) = torch.autograd.grad(value.sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(leaf.exp().sum(), leaf, create_graph=True)
    first.register_hook(lambda _: order.append("first"))
    second.register_hook(lambda _: order.append("second"))
    (first.square().sum() + second.square().sum()).backward()

    assert ["second", "first"] == order


def test_the_line_of_what_a_pass_recorded(virtual_gpu):
    """What its backward allocates belongs to the call that recorded it."""
    leaf = x(requires_grad=True)
    early = leaf.sin().cos().tan()
    (gradient,) = torch.autograd.grad(leaf.exp().sum(), leaf, create_graph=True)
    line = inspect.currentframe().f_lineno - 1
    (gradient.square().sum() + early.sum()).backward()
    lines = {birth.lines.source.rpartition(":")[2] for birth in virtual_gpu.ledger.births if birth.node}

    assert f"{line}" in lines
