"""Which steps may be those of a search for a batch size."""

import pytest

from peaksight.virtual_gpu.training.trials import may_be_trial

DOUBLING = """
size = 1
while True:
    try:
        step()
    except torch.OutOfMemoryError:
        break
    size *= 2
"""

SIZES_WITH_RUNTIME_ERROR = """
for size in (1, 2, 4):
    try:
        step()
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        break
"""

ATTEMPT_IN_A_FUNCTION = """
def fits(size):
    with nothing:
        try:
            step()
            return True
        except (ValueError, torch.cuda.OutOfMemoryError):
            return False

for size in (1, 2, 4):
    fits(size)
"""

TRAINING_IN_A_FUNCTION = """
def train(size):
    for _ in range(3):
        step()

for size in (1, 2, 4):
    try:
        train(size)
    except:
        break
"""

PLAIN = """
for _ in range(3):
    step()
"""

HALVING = """
while True:
    try:
        step()
        break
    except torch.OutOfMemoryError:
        size = 1
"""

HALVING_WITH_ELSE = """
def train():
    while True:
        try:
            step()
        except RuntimeError:
            continue
        else:
            return

train()
"""

ADVICE = """
try:
    for _ in range(3):
        step()
except torch.OutOfMemoryError:
    print("reduce the batch size")
"""

OTHER_ERRORS = """
for _ in range(3):
    try:
        step()
    except (KeyError, ValueError):
        break
"""

IN_A_HANDLER = """
for _ in range(3):
    try:
        raise ValueError
    except Exception:
        step()
"""

AFTER_THE_SEARCH = """
def search():
    for size in (1, 2):
        try:
            pass
        except torch.OutOfMemoryError:
            break

def train():
    step()

search()
train()
"""


def answers(source, tmp_path):
    """What `may_be_trial` says at each `step()` of a script."""
    from contextlib import nullcontext

    seen = []
    script = tmp_path / "train.py"
    script.write_text(source)
    names = {"step": lambda: seen.append(may_be_trial()), "nothing": nullcontext()}
    exec(compile(source, script, "exec"), names)
    return set(seen)


@pytest.mark.parametrize("source", [DOUBLING, SIZES_WITH_RUNTIME_ERROR, ATTEMPT_IN_A_FUNCTION, TRAINING_IN_A_FUNCTION])
def test_a_loop_that_goes_on_after_success_may_be_a_search(source, tmp_path):
    """With what may run out of memory in a `try`."""
    if source is DOUBLING:
        source = source.replace("size *= 2", "size *= 2\n    if size > 8:\n        break")

    assert answers(source, tmp_path) == {True}


@pytest.mark.parametrize(
    "source", [PLAIN, HALVING, HALVING_WITH_ELSE, ADVICE, OTHER_ERRORS, IN_A_HANDLER, AFTER_THE_SEARCH]
)
def test_others_train(source, tmp_path):
    """Nothing is caught, success ends the loop, or there is no loop around the attempt."""
    assert answers(source, tmp_path) == {False}


def test_code_without_a_source_file_trains():
    """Nothing is known of it."""
    seen = []
    exec(
        compile(DOUBLING.replace("size *= 2", "break"), "<string>", "exec"),
        {"step": lambda: seen.append(may_be_trial())},
    )

    assert seen == [False]
