"""Values in settings and launchers: changed in place, everything else as it was."""

import pytest

from peaksight.planning.knob_files import changed_flags, in_launch, in_settings
from peaksight.planning.knob_values import CannotEditError, divided, given_as, in_place_of, multiplied

PARTS = {"batch_size": divided(2), "accum": multiplied(2)}
FLAGS = {"batch": given_as("4"), "accum": given_as("2")}


@pytest.mark.parametrize(
    "before, after",
    [
        ("batch_size: 8  # each\naccum: 1\n", "batch_size: 4  # each\naccum: 2\n"),
        ("train:\n  batch_size: '8'\nseed: 1\n", "train:\n  accum: 2\n  batch_size: 4\nseed: 1\n"),
        ('{"batch_size": 8, "x": [1]}', '{"accum": 2, "batch_size": 4, "x": [1]}'),
        ('{\n  "accum": 4,\n  "batch_size": 8\n}\n', '{\n  "accum": 8,\n  "batch_size": 4\n}\n'),
    ],
)
def test_settings(before, after):
    """In YAML and JSON; a missing one comes before the one that is there, as deep as it."""
    assert in_settings(before, PARTS, is_json=before[0] == "{")[0] == after


@pytest.mark.parametrize(
    "text", ["batch_size: 9\n", "a:\n  batch_size: 8\nb:\n  batch_size: 8\n", "# batch_size: 8\n", "batch_size: auto\n"]
)
def test_settings_that_stay(text):
    """What cannot be divided, is there twice, or not at all."""
    with pytest.raises(CannotEditError):
        in_settings(text, PARTS, is_json=False)


def test_words_and_truth_of_settings():
    """As YAML and JSON write them."""
    knobs = {"bf16": given_as("True"), "optim": in_place_of('"adamw_torch"', '"adamw_torch_fused"')}

    assert in_settings("bf16: false\noptim: adamw_torch\n", knobs, is_json=False)[0] == (
        "bf16: true\noptim: adamw_torch_fused\n"
    )
    assert in_settings('{"bf16": false, "optim": "adamw_torch"}', knobs, is_json=True)[0] == (
        '{"bf16": true, "optim": "adamw_torch_fused"}'
    )


@pytest.mark.parametrize(
    "before, after, lines",
    [
        ("torchrun train.py --batch 8 --accum 1 | tee log\n", "torchrun train.py --batch 4 --accum 2 | tee log\n", [1]),
        ("# train.py\npython train.py \\\n  --batch=8 \\\n  --lr 1\n",
         "# train.py\npython train.py \\\n  --accum=2 --batch=4 \\\n  --lr 1\n", [3]),
        ('CMD ["python", "train.py", "--batch", "8"]\n', 'CMD ["python", "train.py", "--accum", "2", "--batch", "4"]\n',
         [1]),
        ('BATCH=8\nACCUM=1\npython train.py --batch $BATCH --accum "${ACCUM}"\n',
         'BATCH=4\nACCUM=2\npython train.py --batch $BATCH --accum "${ACCUM}"\n', [1, 2]),
    ],
)  # fmt: skip
def test_launchers(before, after, lines):
    """A shell's command on one line or several, a list in a Dockerfile, variables of the file."""
    assert in_launch(before, "train.py", FLAGS) == (after, lines)


@pytest.mark.parametrize(
    "text",
    [
        "python train.py --lr 1\n",
        "python train.py --batch 8\npython train.py --batch 8\n",
        "python train.py --batch $1\n",
        "python pretrain.py --batch 8\n",
        "BATCH=${BATCH:-8}\npython train.py --batch $B\n",
    ],
)
def test_launchers_that_stay(text):
    """Without such a flag, with two commands, or with a value from elsewhere."""
    try:
        after, _ = in_launch(text, "train.py", FLAGS)
    except CannotEditError:
        return
    assert after == text


def test_flags_with_other_values():
    """Of two lists of arguments."""
    before, after = ("--batch", "8", "--lr=1", "--fast"), ("--batch", "4", "--lr=1", "--fast", "--accum", "2")

    assert dict(changed_flags(before, after)) == {"batch": "4", "accum": "2"}
