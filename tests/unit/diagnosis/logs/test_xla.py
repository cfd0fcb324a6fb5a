"""What XLA prints, and what is said of it."""

import io

from peaksight.diagnosis.logs import explain
from peaksight.postmortem import read_log
from peaksight.units import GIB

RAN = (
    "W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate "
    "20.00GiB (rounded to 21474836480)requested by op\n"
    "E 1 pjrt_stream_executor_client.cc:3077] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while "
    "trying to allocate 21474836000 bytes.\n"
    "Traceback (most recent call last):\n"
    '  File "/home/u/scripts/train.py", line 229, in main\n'
    "    train_state, sharding = init_train_state(config, init_rng, mesh)\n"
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 21474836000 bytes.\n"
)


def reading(text):
    return explain(read_log(io.BytesIO(text.encode()), "text"))


def test_a_failure_where_the_state_is_made():
    """It ran, and was not being compiled; the line is that of the exception, which the allocator does not print."""
    seen = reading(RAN)

    assert "train.py:229" in seen.happened
    assert "jax-state-init" == seen.causes[0].kind
    assert "it failed as it ran" in seen.causes[0].evidence[1]


def test_the_same_in_the_step_is_another_cause():
    """The state exists already."""
    assert "jax-state-init" not in {cause.kind for cause in reading(RAN.replace("init_train_state", "step")).causes}


def test_the_rematerialisation_warning_is_a_forecast():
    """Its size is that of the program when it runs; who reads it as the memory of compiling is told."""
    seen = reading(
        "hlo_rematerialization.cc:3183] Can't reduce memory use below 18.56GiB (19928648253 bytes) by "
        "rematerialization; only reduced to 22.00GiB (23622320128 bytes), down from 22.76GiB (24438363652 bytes) "
        "originally"
    )

    assert any("22.00 GiB is what the program will take when it runs" in line for line in seen.causes[0].evidence)


def test_a_request_in_gib_alone():
    """As XLA prints it since the beginning of 2025."""
    (message,) = reading(
        "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 95.43GiB."
    ).messages

    assert round(95.43 * GIB) == message.requested_bytes
