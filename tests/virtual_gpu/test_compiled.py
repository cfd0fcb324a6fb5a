"""`torch.compile`: PyTorch's own compiler plans the memory, and its programs run on the virtual GPU."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._triton import has_triton_package

from peaksight.records import Role
from peaksight.virtual_gpu.compiled import compiler, compiling
from peaksight.virtual_gpu.unreached.probes import compile_with_probes

from .cards import births_on, h100, peak_of, requested, slugs

pytestmark = [pytest.mark.torch]
has_triton = pytest.mark.skipif(not has_triton_package(), reason="Inductor writes for Triton, which is not installed")

ROWS, WIDTH = 256, 512
INPUT_BYTES, HIDDEN_BYTES, WEIGHT_BYTES = ROWS * WIDTH * 4, 4 * ROWS * WIDTH * 4, 4 * WIDTH * WIDTH * 4


class Feed(nn.Module):
    """Three operators of which two are pointwise."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        """A loss."""
        return self.down(F.gelu(self.up(x)) * 2).square().mean()


def batch():
    """An input without a gradient."""
    return torch.randn(ROWS, WIDTH, device="cuda")


def eagerly(virtual_gpu):
    """Where and why something ran eagerly."""
    return [record.what for record in virtual_gpu.approximations.records() if record.slug == "compile"]


def test_buffers_have_the_path_of_their_module(virtual_gpu):
    """Which is that of its parameters, not one with the name of the compiler's wrapper in it."""
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).cuda()
    torch.compile(model, backend="eager")(torch.randn(4, 8, device="cuda"))
    named = {birth.module for birth in virtual_gpu.ledger.births if birth.role is Role.BUFFER}

    assert named == {"Sequential.1"}


@has_triton
def test_fused_operators_leave_one_result(virtual_gpu):
    """The first product, and what GELU and the doubling make of it; eagerly there are two more."""
    model = Feed().cuda()
    compiled = torch.compile(model)
    loss = compiled(batch())
    assert not eagerly(virtual_gpu)
    with births_on(virtual_gpu) as forward:
        loss = compiled(batch())

    assert [INPUT_BYTES, HIDDEN_BYTES, HIDDEN_BYTES, INPUT_BYTES] == [n for n in requested(forward) if n >= INPUT_BYTES]
    loss.backward()
    assert model.up.weight.grad.shape == model.up.weight.shape
    assert "compiled" in slugs(virtual_gpu)
    assert not eagerly(virtual_gpu)


@has_triton
def test_programs_have_lines_and_modules(virtual_gpu):
    """Each allocation belongs to the line and the module of the operators that it was fused of, in backward too."""
    model = Feed().cuda()
    compiled = torch.compile(model)
    compiled(batch()).backward()
    places = {(birth.module, birth.lines.source.partition(":")[0]) for birth in virtual_gpu.ledger.births}

    assert {"Feed.up", "Feed.down"} <= {module for module, _ in places}
    assert {"Feed"} >= {module.partition(".")[0] for module, _ in places} - {""}


@has_triton
def test_modules_of_libraries_have_the_line_that_calls_them(virtual_gpu):
    """No line of the person's is in them, but their paths are known."""
    model = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)).cuda()
    compiled = torch.compile(model)
    with births_on(virtual_gpu) as births:
        compiled(batch())

    places = {birth.lines.source.partition(":")[0] for birth in births}
    assert {"Sequential.0", "Sequential.2"} <= {birth.module for birth in births}
    assert 1 == len(places)


@has_triton
def test_decorated_functions_and_modules_in_place(virtual_gpu):
    """A decorator with arguments and `module.compile()`; a mode whose CUDA graphs are left out is named."""

    @torch.compile(mode="max-autotune", fullgraph=True)
    def double(value):
        return (value + 1) * 2

    model = nn.Linear(WIDTH, WIDTH).cuda()
    model.compile()
    with births_on(virtual_gpu) as births:
        out = double(model(batch()))
    out.sum().backward()

    assert [INPUT_BYTES] * 3 == [n for n in requested(births) if n == INPUT_BYTES]  # input, product, and one for two
    assert model.weight.grad.is_cuda
    assert {"compiled", "compile-mode"} <= set(slugs(virtual_gpu))


@has_triton
def test_kernels_are_timed_at_first(virtual_gpu):
    """A pointwise kernel has two configurations, and a buffer of the size of the cache flushes it between launches."""

    @torch.compile
    def double(value):
        return (value + 1) * 2

    value = torch.ones(1 << 20, device="cuda")
    double(value)
    assert (4 << 20) == peak_of(virtual_gpu, lambda: double(value))
    torch._dynamo.reset()
    first = peak_of(virtual_gpu, lambda: double(value))

    assert (4 << 20) + torch.cuda.get_device_properties().L2_cache_size == first


@has_triton
def test_trials_copy_no_more_than_the_peak_leaves(virtual_gpu):
    """What is written in place is copied first; where nothing is kept for a backward pass, to the host."""

    @torch.compile
    def add(value, other):
        return value.add_(other)

    value, other = (torch.ones(1 << 24, device="cuda") for _ in range(2))
    flush_bytes, nbytes = torch.cuda.get_device_properties().L2_cache_size, 4 << 24
    with torch.no_grad():
        assert flush_bytes == peak_of(virtual_gpu, lambda: add(value, other))
    other.requires_grad_()

    assert flush_bytes + nbytes <= peak_of(virtual_gpu, lambda: add(value, other))


@has_triton
@pytest.mark.parametrize("chosen", [{"mode": "max-autotune"}, {"options": {"max_autotune": True}}])
def test_products_are_tried_on_copies(virtual_gpu, chosen):
    """Of both operands and of the result, once, beside what flushes the cache, before the backward pass begins too."""
    multiply = torch.compile(torch.mm, **chosen)
    left, right = (torch.randn(2048, 2048, device="cuda", requires_grad=True) for _ in range(2))
    nbytes, flush_bytes = 4 << 22, torch.cuda.get_device_properties().L2_cache_size
    ends = []

    assert 3 * nbytes + flush_bytes == peak_of(virtual_gpu, lambda: ends.append(multiply(left, right)))
    assert 3 * nbytes + flush_bytes == peak_of(virtual_gpu, lambda: ends[0].backward(left.detach()))
    assert nbytes == peak_of(virtual_gpu, lambda: multiply(left, right))
    assert "compile-mode" in slugs(virtual_gpu)
    assert not eagerly(virtual_gpu)


STEP = b"""
def train_step(model, value):
    loss = model(value)
    if value.shape[0] > 1:
        loss = loss * 2
    print("between")
    return loss.sin()
"""


@has_triton
def test_probes_in_the_code_of_the_person(virtual_gpu):
    """A function that may train notes what is reached of it; compiled it does not, and counts as reached."""
    code, _, hits = compile_with_probes(STEP, "train.py")
    names = {}
    exec(code, names)
    torch.compile(names["train_step"])(Feed().cuda(), batch()).backward()

    assert not eagerly(virtual_gpu)
    assert all(hits)
    assert "compiled" in slugs(virtual_gpu)


@has_triton
def test_a_compiler_that_was_imported_without_a_card(monkeypatch):
    """It has kept the functions of torch.cuda that it found then, and answers for the card of an earlier run."""
    module = pytest.importorskip("torch._dynamo.device_interface")
    monkeypatch.setattr(module.CudaInterface, "get_device_properties", staticmethod(pytest.fail))
    monkeypatch.setitem(module.caching_worker_device_properties, "cuda", [None])
    with h100() as gpu:
        assert torch.compile(lambda value: (value + 1) * 2)(batch()).is_cuda
        assert not eagerly(gpu)


@has_triton
def test_numbers_that_move_to_the_card(virtual_gpu):
    """As transformers writes its masks: the compiler would compute them on the card that it traces for."""

    @torch.compile
    def masked(value):
        lowest = torch.tensor(torch.finfo(value.dtype).min).to(value.device)
        return torch.where(value > 0, value, lowest)

    assert masked(batch()).is_cuda
    assert not eagerly(virtual_gpu)


@has_triton
def test_steps_end_also_inside_compiled_functions(virtual_gpu):
    """An optimizer's step is left as it is, as its hooks tell of the end of the run's step."""
    model = nn.Linear(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)

    @torch.compile
    def step(x):
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(2):
        step(batch())

    assert 3 == virtual_gpu.loop.step
    assert optimizer.state[model.weight]["momentum_buffer"].is_cuda


@has_triton
def test_what_cannot_be_compiled_runs_eagerly(virtual_gpu, monkeypatch):
    """A graph that is too large here; the model runs all the same."""
    monkeypatch.setattr(compiling, "MAX_OPERATORS", 1)
    model = Feed().cuda()
    torch.compile(model)(batch()).backward()
    (note,) = (each for each in virtual_gpu.approximations.records() if each.slug == "compile")

    assert "a graph of" in note.what
    assert model.up.weight.grad.is_cuda


def test_other_backends_run_eagerly(virtual_gpu):
    """What is no backend of Inductor gives back what it was given, with the reason; so it is without Triton."""
    model = Feed().cuda()
    same = torch.compile(model, backend="aot_eager")
    step = torch.optim.SGD(model.parameters()).step
    notes = {each.slug: each.what for each in virtual_gpu.approximations.records()}

    assert same is model
    assert torch.compile(step) is step
    assert "the backend is aot_eager" in notes["compile"]


def test_the_compiler_has_the_names_that_are_needed():
    """Only Triton may be missing, of which builds for the CPU have none."""
    assert compiler.load() == (None if has_triton_package() else "triton")
