"""The causes of logs: the public reports as a whole, and texts made to tell two causes apart."""

import io

import pytest

from benchmarks.read.score import answers, summary
from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log


def read(text):
    return explain(read_log(io.BytesIO(text.encode()), "text"))


def kinds(text):
    return [cause.kind for cause in read(text).causes]


@pytest.mark.parametrize("described", [False, True])
def test_the_accepted_cause_is_among_the_first_two(described, capsys):
    """For 85 % of the reports that decide it; where they do not, that is said for 75 %."""
    found = answers(described=described)
    decidable = [answer for answer in found if answer.decides]
    open_ones = [answer for answer in found if not answer.decides]
    with capsys.disabled():
        print(f"\n{'described' if described else 'error text'}: {summary(found)}")

    assert sum(answer.is_right for answer in decidable) >= 0.85 * len(decidable)
    assert sum(not answer.says_so for answer in open_ones) >= 0.75 * len(open_ones)


PARENS = (
    "RuntimeError: CUDA out of memory. Tried to allocate {asked} (GPU 0; {capacity} GiB total capacity; {allocated} "
    "GiB "
    "already allocated; {free} free; {reserved} GiB reserved in total by PyTorch)"
)


def parens(asked="64.00 MiB", capacity="24.00", allocated="22.00", free="10.00 MiB", reserved="22.50"):
    return PARENS.format(asked=asked, capacity=capacity, allocated=allocated, free=free, reserved=reserved)


CASES = [
    ("card-full-of-own-tensors", parens()),
    ("other-process-holds-card", parens(allocated="2.00", reserved="2.20")),
    ("fragmentation", parens(allocated="12.00", reserved="22.00", asked="2.00 GiB")),
    ("free-memory-refused", parens(allocated="2.00", reserved="2.50", free="20.00 GiB", asked="3.00 GiB")),
    ("single-huge-tensor", parens(allocated="2.00", reserved="2.50", free="20.00 GiB", asked="60.00 GiB")),
    ("absurd-size-bug", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."),
    ("library-out-of-memory", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
    "`cublasCreate(handle)`"),
    ("device-assert-not-memory", "Assertion `srcIndex < srcSelectDimSize` failed.\nCUBLAS_STATUS_NOT_INITIALIZED "
    "when calling"),
    ("host-oom-kill", "Out of memory: Killed process 12 (python) total-vm:9kB, anon-rss:8kB"),
    ("host-oom-kill", "torch.distributed.elastic: failed (exitcode: -9) local_rank: 0 (pid: 1)"),
    ("host-memory", "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes."),
    ("shared-memory", "DataLoader worker (pid 7) is killed by signal: Bus error."),
    ("kernel-shared-memory", "OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: "
    "101376."),
    ("nccl-alloc-outside-pool", "NCCL WARN Failed to CUDA calloc async 4194304 bytes"),
    ("retain-graph", f"loss.backward(retain_graph=True)\n{parens()}"),
    ("loss-accumulated-with-graph", f"    running_loss += loss\n{parens()}"),
    ("near-oom-warning", "2 pytorch allocator cache flushes since last step"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), CASES, ids=lambda value: value[:30])
def test_the_first_cause_of_a_text(kind, text):
    """By its figures or its words."""
    assert kinds(text)[0] == kind


STACKS = [
    ("eval-predictions-accumulated", "transformers/trainer.py", "evaluation_loop", "nested_concat(preds, logits)"),
    ("fp32-logits-large-vocab", "transformers/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()"),
    ("fp32-logits-large-vocab", "torch/nn/functional.py", "cross_entropy", "torch._C._nn.cross_entropy_loss("),
    ("attention-scores-quadratic", "bert/modeling_bert.py", "forward", "attention_scores = torch.matmul(query, key)"),
    ("optimizer-state-first-step", "torch/optim/adamw.py", "_init_group", "state['exp_avg_sq'] = zeros_like("),
    ("optimizer-foreach-intermediates", "torch/optim/adamw.py", "_multi_tensor_adamw", "torch._foreach_sqrt(sqs)"),
    ("model-state-too-big", "accelerate/utils/modeling.py", "set_module_tensor_to_device", "value.to(device)"),
    ("save-time-state-dict", "transformers/trainer.py", "_save_checkpoint", "self.save_model(output_dir)"),
]


@pytest.mark.parametrize(("kind", "path", "function", "code"), STACKS, ids=lambda value: value[-24:])
def test_the_innermost_lines_of_the_stack_decide(kind, path, function, code):
    """What allocates is named there; a full card alone would leave it open."""
    frame = f'File "/venv/lib/python3.11/site-packages/{path}", line 9, in {function}\n    {code}\n'

    assert kinds(f"Traceback (most recent call last):\n  {frame}{parens()}")[0] == kind


NOT = [
    ("loss-accumulated-with-graph", f"    running_loss += loss.item()\n{parens()}"),
    ("fragmentation", parens(allocated="12.00", reserved="22.00", asked="14.00 GiB")),
    ("other-process-holds-card", parens()),
    ("host-oom-kill", f"{parens()}\ntorch.distributed.elastic: failed (exitcode: 1) local_rank: 0 (pid: 1)"),
    ("host-oom-kill", f"{parens()}\nRuntimeError: DataLoader worker (pid(s) 7) exited unexpectedly"),
    ("retain-graph", "retain_graph=True\n" + "step\n" * 500 + parens()),
]


@pytest.mark.parametrize(("kind", "text"), NOT, ids=lambda value: value[:30])
def test_a_near_miss(kind, text):
    """What looks alike, and is not."""
    assert kinds(text)[0] != kind


def test_a_full_card_alone_does_not_decide_a_cause():
    """Figures say that it is full, not of what."""
    reading = read(parens())

    assert not reading.decided
    assert reading.cannot_tell[0].startswith("The cause: cannot tell from this text")


def test_logits_by_their_size():
    """Batch, sequence and vocabulary stand in the log, and the request is exactly that in fp32."""
    log = f"per_device_train_batch_size=4 max_length=2048 vocab_size=128256\n{parens(asked='3.91 GiB')}"
    reading = read(log)

    assert reading.causes[0].kind == "fp32-logits-large-vocab"
    assert (4, 2048, 128256) == reading.fits[0].shape


def test_a_size_that_nothing_fits_exactly():
    """Near is not exact: no tensor is named."""
    log = f"per_device_train_batch_size=4 max_length=2048 vocab_size=128256\n{parens(asked='3.95 GiB')}"

    assert read(log).fits == ()


def test_no_shape_is_read_out_of_a_whole_segment():
    """2 and 20 MiB are segments for any small tensor."""
    assert read(f"x [1024, 512] fp32\n{parens(asked='2.00 MiB')}").fits == ()


def training_log(bytes_at):
    lines = [f"step {step}: loss 2.0 memory {bytes_at(step):.2f} GB" for step in range(0, 4000, 10)]
    return "\n".join(lines) + f"\n{parens()}\n"


def test_memory_that_grows_from_step_to_step():
    """The log prints it, and it climbs all along."""
    assert kinds(training_log(lambda step: 8 + step / 400))[0] == "memory-grows-over-steps"


def test_memory_that_grows_only_at_the_start():
    """State and caches, as in every run: no leak."""
    causes = read(training_log(lambda step: 8 + min(step, 100) / 100)).causes

    assert all(cause.kind != "memory-grows-over-steps" or cause.confidence == "possible" for cause in causes)
