"""Where and when a message came from."""

import io

import pytest

from peaksight.postmortem import read_log
from peaksight.records import Phase

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB."


def message_after(*frames, before=""):
    lines = [f'  File "{path}", line {number}, in {function}\n    {code}' for path, number, function, code in frames]
    text = "\n".join([before, "Traceback (most recent call last):", *lines, OOM])
    (message,) = read_log(io.BytesIO(text.encode()), "text").messages
    return message


TRAIN = ("/home/me/train.py", 42, "main", "loss = model(batch)")
LIBRARY = "/venv/lib/python3.11/site-packages"

PHASES = [
    (Phase.FORWARD, (f"{LIBRARY}/torch/nn/modules/module.py", 1501, "_call_impl", "return forward_call(*args)")),
    (Phase.BACKWARD, (f"{LIBRARY}/torch/autograd/__init__.py", 200, "backward", "engine.run_backward(")),
    (Phase.OPTIMIZER, (f"{LIBRARY}/torch/optim/adamw.py", 120, "_init_group", "state['exp_avg_sq'] = "
    "torch.zeros_like(")),
    (Phase.EVALUATION, (f"{LIBRARY}/transformers/trainer.py", 3000, "evaluation_loop", "logits = nested_concat(")),
    (Phase.SAVE, (f"{LIBRARY}/transformers/trainer.py", 2000, "_save_checkpoint", "self.save_model(output_dir)")),
    (Phase.INIT, (f"{LIBRARY}/transformers/modeling_utils.py", 900, "from_pretrained", "return load(")),
]  # fmt: skip


@pytest.mark.parametrize(("phase", "frame"), PHASES, ids=lambda value: str(value) if isinstance(value, Phase) else "")
def test_the_phase_by_the_functions_on_the_stack(phase, frame):
    """The person's own line is the innermost one outside libraries."""
    message = message_after(("/home/me/train.py", 42, "main", "run()"), frame)

    assert (phase, "train.py:42") == (message.phase, message.at)


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step 120: loss 2.0", 120),
        ("  3%|x         | 31/1000 [00:10<05:00,  3.1it/s]", 31),
        ("Epoch: [0]  iter: 500 loss 1.2", 500),
        ("global_step=77", 77),
        ("nothing counted", None),
    ],
)
def test_the_step_before_a_message(line, step):
    """The last that a progress bar or a log line counted."""
    assert message_after(TRAIN, before=line).step == step


def test_an_earlier_traceback_is_not_taken():
    """Only frames behind the last beginning of one belong to the message."""
    earlier = 'Traceback (most recent call last):\n  File "/home/me/data.py", line 7, in f\n    x\nValueError: no'

    assert message_after(TRAIN, before=earlier).at == "train.py:42"


RICH = """\
\u2502 C:\\me\\train.py:290 in main                                   \u2502
\u2502 \u2771 290 \u2502   retval = optimizer.step(*args)                          \u2502
\u2502 C:\\venv\\lib\\site-packages\\torch\\optim\\adamw.py:171 in step     \u2502
"""
IPYTHON = """\
<ipython-input-5-a2a7f14f2b5a> in <module>()
     27         loss = criterion(output, labels_)
---> 28         loss.backward()

/usr/lib/python3/dist-packages/torch/autograd/__init__.py in backward(tensors, grad_tensors)
     88     Variable._execution_engine.run_backward(
---> 89         tensors, grad_tensors)
"""


CELL = """\
Cell In[22], line 29
---> 29 trainer.evaluate()
File /home/me/lib/python3.11/site-packages/transformers/trainer.py:2113, in Trainer.evaluate(self, eval_dataset)
-> 2113 output = eval_loop(
"""


@pytest.mark.parametrize(
    ("traceback", "at", "phase"),
    [
        (CELL, "Cell In[22]:29", Phase.EVALUATION),
        (RICH, "train.py:290", Phase.OPTIMIZER),
        (IPYTHON, "<ipython-input-5-a2a7f14f2b5a>:28", Phase.BACKWARD),
    ],
)
def test_tracebacks_of_rich_and_ipython(traceback, at, phase):
    """In a box, or with the line behind an arrow."""
    (message,) = read_log(io.BytesIO(f"{traceback}{OOM}".encode()), "text").messages

    assert (at, phase) == (message.at, message.phase)
