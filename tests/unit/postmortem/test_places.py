"""Which frame is the person's, and what a stack tells of training."""

import pytest

from peaksight.postmortem.snapshots.places import Names, place_of
from peaksight.postmortem.snapshots.tables import Frame
from peaksight.records import Phase

SCRIPT = Frame("/home/me/run/train.py", 40, "<module>")
TORCH = "/opt/conda/lib/python3.11/site-packages/torch"


def of_torch(path, name="f"):
    return Frame(f"{TORCH}/{path}", 1, name)


@pytest.mark.parametrize(
    "filename",
    [
        f"{TORCH}/nn/functional.py",
        "/usr/lib/python3/dist-packages/torch/nn/functional.py",
        "/usr/lib/python3.10/contextlib.py",
        "/home/me/.venv/lib/python3.11/site-packages/transformers/trainer.py",
        "C:\\Users\\me\\miniconda3\\Lib\\site-packages\\torch\\nn\\functional.py",
        "/workspace/pytorch/torch/nn/modules/linear.py",
        "/tmp/torchinductor_me/ab/cabc.py",
        "<frozen runpy>",
        "<string>",
        "/pytorch/aten/src/ATen/native/Linear.cpp",
        "??",
    ],
)
def test_libraries(filename):
    """Are told by their path, also where they are not installed here; C++ is nobody's line."""
    assert ("/home/me/run/train.py", 40) == place_of((Frame(filename, 7, "f"), SCRIPT)).source


@pytest.mark.parametrize(
    "filename",
    [
        "/home/me/run/model.py",
        "/home/me/torch/utils/data.py",
        "/tmp/ipykernel_12/345.py",
        "<ipython-input-3-abcdef>",
        "x.py",
    ],
)
def test_own_files(filename):
    """Everything else, and the cells of notebooks."""
    assert (filename, 7) == place_of((of_torch("nn/functional.py"), Frame(filename, 7, "f"), SCRIPT)).source


def test_the_library_frame():
    """Is the innermost below the person's that is no plumbing."""
    inner = (of_torch("_ops.py"), of_torch("nn/modules/linear.py"), of_torch("nn/modules/module.py"))

    assert "torch/nn/modules/linear.py:1" == place_of((*inner, SCRIPT)).library
    assert "" == place_of((SCRIPT, of_torch("nn/modules/linear.py"))).library


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        ((), Phase.BACKWARD),
        ((Frame("/pytorch/torch/csrc/autograd/engine.cpp", 1, "torch::autograd::Engine"),), Phase.BACKWARD),
        ((of_torch("autograd/graph.py", "_engine_run_backward"), SCRIPT), Phase.BACKWARD),
        ((of_torch("nn/modules/linear.py"), of_torch("utils/checkpoint.py", "unpack_hook")), Phase.BACKWARD),
        ((Frame("/home/me/run/f.py", 3, "backward"), of_torch("autograd/function.py", "apply")), Phase.BACKWARD),
        ((of_torch("optim/adam.py", "_init_group"), of_torch("optim/adam.py", "step"), SCRIPT), Phase.OPTIMIZER),
        (
            (Frame("/home/me/run/lion.py", 3, "step"), of_torch("optim/optimizer.py", "wrapper"), SCRIPT),
            Phase.OPTIMIZER,
        ),
        ((of_torch("optim/lr_scheduler.py", "step"), SCRIPT), None),
        ((of_torch("optim/optimizer.py", "zero_grad"), SCRIPT), None),
        ((of_torch("serialization.py", "save"), SCRIPT), Phase.SAVE),
        ((of_torch("nn/modules/module.py", "_call_impl"), SCRIPT), None),
        ((Frame("/usr/lib/python3.11/threading.py", 9, "_bootstrap"),), None),
    ],
)
def test_phases(frames, phase):
    """What a stack decides: that of the forward is left to the moment."""
    assert phase is place_of(frames).phase


def test_what_makes_parameters():
    """`Module.to`, a layer that is made on the device, and pretrained models."""
    loading = Frame(f"{TORCH.removesuffix('torch')}transformers/modeling_utils.py", 5, "from_pretrained")

    assert place_of((of_torch("nn/modules/module.py", "_apply"), SCRIPT)).makes_parameters
    assert place_of((of_torch("nn/modules/linear.py", "__init__"), SCRIPT)).makes_parameters
    assert place_of((loading, SCRIPT)).makes_parameters
    assert not place_of((of_torch("nn/modules/linear.py", "forward"), SCRIPT)).makes_parameters


def test_names_are_relative_to_the_script():
    """Its folder is that of the outermost module in most stacks; other files go by the folder that has all of them."""
    inside = place_of((Frame("/home/me/run/sub/model.py", 7, "f"), SCRIPT, Frame("<frozen runpy>", 1, "_run_code")))
    beside = place_of((Frame("/home/me/lib/layers.py", 3, "f"), SCRIPT))
    names = Names([inside, beside])

    assert ["sub/model.py:7", "lib/layers.py:3"] == [names.line(place.source) for place in (inside, beside)]
    assert "train.py:40" == names.line((SCRIPT.filename, SCRIPT.line))
    assert "/elsewhere/x.py:3" == names.line(("/elsewhere/x.py", 3))
    assert "" == names.line(None)
    assert "a?[2J.py:1" == Names([]).line(("a\x1b[2J.py", 1))
