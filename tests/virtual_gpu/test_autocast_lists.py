"""Autocast, operator by operator: the calls of PyTorch's own tests, which follow the lists of its documentation."""

import pytest
import torch
from torch.utils._pytree import tree_leaves

from .cards import card_of

pytestmark = pytest.mark.torch
lists = pytest.importorskip("torch.testing._internal.autocast_test_lists")

# Its imports forbid to set the global flags of torch; other tests set them.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True
OWNERS = (torch, torch.nn.functional, torch._C._nn, torch._C._linalg)
EXPECTED = {
    "torch_fp16": torch.float16,
    "nn_fp16": torch.float16,
    "linalg_fp16": torch.float16,
    "methods_fp16": torch.float16,
    "torch_fp32": torch.float32,
    "nn_fp32": torch.float32,
    "methods_fp32": torch.float32,
    "torch_need_autocast_promote": torch.float32,
}


def call(name, args, kwargs):
    """`torch.name(*args)`, or the method of the first argument where there is no such function."""
    owner = next((owner for owner in OWNERS if hasattr(owner, name) and not name.startswith("__")), None)
    if owner is None:
        return getattr(args[0], name)(*args[1:], **kwargs)
    return getattr(owner, name)(*args, **kwargs)


def result_dtypes(entry):
    """The operator's name, and the types of what it returns under autocast; `kwargs` may hold an expected type."""
    name, args, *rest = entry
    kwargs = next((each for each in rest if isinstance(each, dict)), {})
    out = call(name, args, kwargs)
    return {leaf.dtype for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)}


@pytest.fixture(autouse=True)
def installed_card():
    """A card with the rules of the installed release, whose lists these are."""
    with card_of("h100-80gb", build=torch.__version__):
        yield


@pytest.mark.parametrize("which", EXPECTED)
def test_documented_operators(which):
    """Each operator of the list returns the type that the documentation gives."""
    entries = [entry for entry in getattr(lists.AutocastTestLists(torch.device("cuda")), which) if is_plain(entry)]
    with torch.autocast("cuda", torch.float16):
        found = {entry[0]: result_dtypes(entry) for entry in entries}
    assert found == {entry[0]: {EXPECTED[which]} for entry in entries}
    assert found


def is_plain(entry):
    """Without entries for cuDNN's own operators, which no documented function calls, and such as name another type."""
    name, args, *rest = entry
    names_a_type = any(isinstance(each, (torch.dtype, type)) for each in rest)
    return isinstance(args, tuple) and not name.startswith("cudnn_") and not names_a_type


@pytest.mark.parametrize("which", ["torch_expect_builtin_promote", "methods_expect_builtin_promote"])
def test_what_promotes_by_itself(which):
    """Operators that autocast leaves alone promote as ever."""
    entries = getattr(lists.AutocastTestLists(torch.device("cuda")), which)
    with torch.autocast("cuda", torch.float16):
        found = [(entry[0], result_dtypes(entry[:2])) for entry in entries if entry[0] != "equal"]  # returns a bool
    assert found == [(name, {expected}) for name, _, expected in entries if name != "equal"]


def test_banned():
    """What is unsafe in half raises, as the documentation says."""
    for name, args, owner in lists.AutocastTestLists(torch.device("cuda")).banned:
        with torch.autocast("cuda", torch.float16), pytest.raises(RuntimeError, match="unsafe"):
            getattr(owner, name)(*args)
