"""The predicted time of steps."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

from peaksight.virtual_gpu.timing.efficiencies import efficiencies

from ..cards import card_of, h100

pytestmark = pytest.mark.torch


def steps_of(gpu, train, *, num_steps=3):
    """The work of `num_steps` on `gpu`; `train(optimizer)` is one."""
    with gpu:
        train(num_steps)
    return gpu.stopwatch.steps[0]


def perceptron(num_steps, *, width=4096, batch=4096, depth=4, dtype=torch.float32, forward=None, **options):
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(depth))).to("cuda", dtype)
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    for _ in range(num_steps):
        inputs = torch.randn(batch, width, device="cuda", dtype=dtype, requires_grad=True)
        (forward or type(model).__call__)(model, inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def last(gpu, **options):
    return steps_of(gpu, lambda num_steps: perceptron(num_steps, **options))[-1]


def test_flops_of_a_step():
    """A forward and twice as much for the backward: three products a layer."""
    assert last(h100()).flops == 4 * 3 * 2 * 4096**3


def test_steps_alike_take_as_long():
    """All but the first, which makes the optimizer's state."""
    _, second, third = steps_of(h100(), perceptron)

    assert second.step == 2
    assert second.seconds == pytest.approx(third.seconds)


def test_a_step_is_not_faster_than_the_card():
    """Nor more than twice as slow for large products in float32."""
    card = h100().room.card
    step = last(h100())

    assert 1 <= step.seconds / (step.flops / card.fp32_flop_per_second) < 2


def recomputing(model, inputs):
    return checkpoint_sequential(model, 4, inputs, use_reentrant=False)


def test_recomputing_counts():
    """Of four segments of two layers three are checkpointed: each runs its first layer again."""
    plain = last(h100(), depth=8, dtype=torch.bfloat16)
    again = last(h100(), depth=8, dtype=torch.bfloat16, forward=recomputing)

    assert again.flops == plain.flops * (8 * 3 + 3) / (8 * 3)
    assert again.seconds > plain.seconds


def test_recomputing_takes_the_host_time():
    """Also where the kernels are small: for each of three regions, and for each tensor that is saved inside."""
    small = {"width": 8, "batch": 8, "depth": 8}
    host = efficiencies(h100().room.card).host
    extra = last(h100(), forward=recomputing, **small).seconds - last(h100(), **small).seconds

    assert extra > 3 * host.region_seconds + 3 * host.hook_seconds


def test_half_precision_and_tf32_are_faster():
    """As the script allows."""
    before = torch.backends.cuda.matmul.fp32_precision
    full, half = last(h100()), last(h100(), dtype=torch.bfloat16)
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        rounded = last(h100())
    finally:
        torch.backends.cuda.matmul.fp32_precision = before

    assert half.seconds < rounded.seconds < full.seconds
    assert half.flops == rounded.flops == full.flops


def test_a_slower_card_takes_longer():
    """By its own figures."""
    assert last(card_of("t4")).seconds > 4 * last(h100()).seconds


def test_small_kernels_wait_for_the_host():
    """A for-loop over many small parameters takes longer than one kernel for all of them."""
    small = {"width": 8, "batch": 8, "depth": 20}
    loop, foreach = last(h100(), foreach=False, **small), last(h100(), foreach=True, **small)
    fused = last(h100(), fused=True, **small)

    assert loop.kernels > foreach.kernels > fused.kernels
    assert loop.seconds > foreach.seconds > fused.seconds


def test_reading_a_value_waits_for_the_card(virtual_gpu):
    """The clocks are together then."""
    model = nn.Linear(4096, 4096, device="cuda")
    loss = model(torch.ones(4096, 4096, device="cuda")).sum()
    clocks = virtual_gpu.stopwatch.clocks
    ahead = clocks.now - clocks.host
    loss.item()

    assert ahead > 1e-3
    assert clocks.host == clocks.now


def test_copies_take_the_links_time(virtual_gpu):
    """From pinned memory they are faster, and with `non_blocking` the host goes on."""
    nn.Linear(1, 1, device="cuda")(torch.ones(1, 1, device="cuda"))
    clocks = virtual_gpu.stopwatch.clocks
    num_bytes = 2**30
    times = []
    for tensor, options in [
        (torch.empty(num_bytes, dtype=torch.uint8), {}),
        (torch.empty(num_bytes, dtype=torch.uint8).pin_memory(), {}),
        (torch.empty(num_bytes, dtype=torch.uint8).pin_memory(), {"non_blocking": True}),
    ]:
        torch.cuda.synchronize()
        host, card = clocks.host, clocks.now
        tensor.to("cuda", **options)
        times.append((clocks.host - host, clocks.now - card))
    (pageable_host, pageable), (pinned_host, pinned), (ahead_host, ahead) = times

    fraction = efficiencies(virtual_gpu.room.card).host.pinned_fraction
    assert pinned >= num_bytes / (fraction * virtual_gpu.room.card.link_bytes_per_second)
    assert pageable > pinned
    assert pageable_host == pytest.approx(pageable)
    assert pinned_host == pytest.approx(pinned)
    assert ahead_host < 1e-3 < ahead


def test_offloading_takes_the_links_time():
    """What autograd saves goes to the host and comes back, faster where that has pinned memory."""

    def offloading(pin_memory):
        def forward(model, inputs):
            with torch.autograd.graph.save_on_cpu(pin_memory=pin_memory):
                return model(inputs)

        return forward

    plain, pinned, pageable = (
        last(h100(), forward=forward, width=2048) for forward in (None, offloading(True), offloading(False))
    )

    assert plain.seconds < pinned.seconds < pageable.seconds
    assert plain.flops == pinned.flops == pageable.flops


def test_what_builds_the_model_is_in_no_step(virtual_gpu):
    """The first step begins with the first forward."""
    nn.Linear(8192, 8192).cuda()

    assert virtual_gpu.stopwatch.clocks.now == 0


def test_a_stream_waits_for_another(virtual_gpu):
    """And the host for an event."""
    model = nn.Linear(4096, 4096, device="cuda")
    output = model(torch.ones(4096, 4096, device="cuda"))
    side, event = torch.cuda.Stream(), torch.cuda.Event()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        output.sum()
        event.record()
    clocks = virtual_gpu.stopwatch.clocks
    event.synchronize()

    assert clocks.host >= clocks.of((0, side.stream_id)) > clocks.of((0, 0)) - clocks.host
    assert event.seconds > 1e-3


def test_no_elements_take_no_kernel_and_no_wait(virtual_gpu):
    """An empty tensor that is made on the host for the card, as a cache of keys and values begins with one."""
    nn.Linear(4096, 4096, device="cuda")(torch.ones(4096, 4096, device="cuda"))
    clocks = virtual_gpu.stopwatch.clocks
    ahead = clocks.now - clocks.host
    torch.tensor([], device="cuda").sin()

    assert 0 < ahead - (clocks.now - clocks.host) < 5e-5
