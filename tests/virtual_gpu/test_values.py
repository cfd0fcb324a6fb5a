"""Values on the card: known where they derive from real data, else stand-ins, which are noted."""

import pytest
import torch
from torch import nn

from .cards import births_on, requested, slugs

pytestmark = pytest.mark.torch

LENGTHS = [3, 1, 2]


def on_card(data, **options):
    """`data` made on the host and moved."""
    return torch.tensor(data, **options).to("cuda")


def unknown(*shape, dtype=torch.float32):
    """A tensor whose values depend on a random draw of the card, by a law that is not known."""
    return torch.randn(shape, device="cuda").neg().to(dtype)


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda: on_card(LENGTHS).max().item(), 3),
        (lambda: on_card(LENGTHS).sum().item(), 6),
        (lambda: int(on_card(LENGTHS)[0]), 3),
        (lambda: float(on_card(0.25) * 2), 0.5),
        (lambda: bool((on_card(LENGTHS) > 0).all()), True),
        (lambda: bool((on_card(LENGTHS) > 1).all()), False),
        (lambda: (on_card(LENGTHS) == 2).any().item(), True),
        (lambda: on_card(LENGTHS).tolist(), LENGTHS),
        (lambda: on_card(LENGTHS).cpu().tolist(), LENGTHS),
        (lambda: on_card(LENGTHS).cumsum(0).tolist(), [3, 4, 6]),
        (lambda: on_card(LENGTHS).to(torch.int32).to("cpu", non_blocking=True).tolist(), LENGTHS),
        (lambda: (torch.arange(4, device="cuda")[None] < on_card(LENGTHS)[:, None]).sum().item(), 6),
        (lambda: on_card(LENGTHS).argmax().item(), 0),
        (lambda: torch.where(on_card(LENGTHS) > 1, 1, 0).tolist(), [1, 0, 1]),
        (lambda: torch.zeros(2, device="cuda").tolist(), [0.0, 0.0]),
        (lambda: torch.full((2,), 7, device="cuda").tolist(), [7, 7]),
        (lambda: unknown(2, 3).shape[0], 2),
        (lambda: torch.ones_like(unknown(2)).tolist(), [1.0, 1.0]),
        (lambda: [int(length) for length in on_card(LENGTHS)], LENGTHS),
        (lambda: range(4)[on_card(2)], 2),
        (lambda: torch.bincount(on_card(LENGTHS)).tolist(), [0, 1, 1, 1]),
    ],
)
def test_known_values(virtual_gpu, read, expected):
    """What derives from data of the host has its real value, and nothing is noted."""
    assert expected == read()
    assert "values" not in slugs(virtual_gpu)


@pytest.mark.parametrize(
    ("read", "stand_in"),
    [
        (lambda: unknown().item(), 1.0),
        (lambda: float(unknown(4).sum()), 1.0),
        (lambda: unknown(4, dtype=torch.int64).sum().item(), 1),
        (lambda: bool(unknown() > 0), False),
        (lambda: unknown(2, 2).argmax().item(), 1),
        (lambda: bool((unknown(4) > 0).all()), True),
        (lambda: bool((unknown(4) > 0).any()), False),
    ],
)
def test_stand_ins(virtual_gpu, read, stand_in):
    """What depends on the card's own numbers is 1.0, 1 or False, and the report says where it was asked for first."""
    assert stand_in == read()

    (noted,) = virtual_gpu.approximations.records()
    assert "values" == noted.slug
    assert noted.what.startswith("values read from the device once")
    assert "test_values.py:" in noted.what


def test_a_branch_that_selects_by_its_mask_is_taken(virtual_gpu):
    """What selects counts an unknown mask as true; what only guards has the stand-in."""
    x, taken = unknown(4, 8), []
    inside = (x > 0) & (x < 1)
    if torch.any(inside):
        taken.append(x[inside].shape)
    if inside.any() and len(x):
        x[inside] = 0.0
        taken.append("written")
    if torch.any(x > 5):
        taken.append("guarded")
    found = inside.any().item()
    if found and len(x):
        taken.append(x[inside].sum().shape)
    is_large = bool((x > 5).any())
    if is_large:
        taken.append("guarded again")

    assert [(32,), "written", ()] == taken
    (noted,) = [each for each in virtual_gpu.approximations.records() if each.slug == "values"]
    assert "5 times" in noted.what


def test_many_numbers_of_the_host_are_compared(virtual_gpu):
    """Labels of speech are padded with a number of their own; what is computed of so many is not known."""
    labels = torch.rand(64, 200, 80)
    labels[:, 150:] = -100.0
    on_card = labels.cuda()
    is_spoken = on_card != -100.0

    assert (64 * 150 * 80,) == tuple(on_card.masked_select(is_spoken).shape)
    assert [150] * 64 == is_spoken[:, :, 0].sum(1).tolist()
    assert not virtual_gpu.approximations.records()
    assert (64 * 50 * 80,) == tuple(on_card[on_card.mul(2).floor() == -200].shape)
    assert 1.0 == on_card.max().item()
    on_card[:, 0] = unknown(80)
    assert (64 * 200 * 80,) == tuple(on_card[on_card != -100.0].shape)


def test_parameters_are_not_compared(virtual_gpu):
    """Their numbers change, and are never copied for it."""
    weight = torch.nn.Linear(512, 512).cuda().weight
    assert (512 * 512,) == tuple(weight[weight != 0.5].shape)
    assert ["shapes"] == [record.slug for record in virtual_gpu.approximations.records()]


def test_formatted_values(virtual_gpu):
    """A tensor of one value is formatted as that value, known or not; others only without a format."""
    known, unknown = torch.tensor(2.5).cuda(), torch.nn.Linear(1, 1).cuda().weight.sum()

    assert "2.500 1.0" == f"{known:.3f} {unknown:.1f}"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{torch.ones(2, device='cuda'):.3f}"


def test_loss_of_a_model(virtual_gpu):
    """A loss can be logged and formatted."""
    loss = nn.Linear(4, 1).cuda()(torch.ones(2, 4, device="cuda")).mean()

    assert "1.00" == f"{loss.item():.2f}"
    assert 1.0 == loss.detach().cpu().item()


@pytest.mark.parametrize(
    "write",
    [
        lambda tensor: tensor.add_(unknown(3)),
        lambda tensor: tensor.copy_(unknown(3)),
        lambda tensor: tensor.normal_(),
        lambda tensor: tensor[1:].mul_(unknown(2)),
        lambda tensor: tensor.__setitem__(0, unknown()),
        lambda tensor: torch.add(unknown(3), 1, out=tensor),
        lambda tensor: torch._foreach_add_([tensor], [unknown(3)]),
        lambda tensor: tensor.view(3).masked_fill_(unknown(3) > 0, 2.0),
    ],
)
def test_writes_forget(virtual_gpu, write):
    """After an unknown value is written, the tensor and its views are unknown."""
    tensor = torch.zeros(3, device="cuda")
    view = tensor[:2]
    write(tensor)
    view[0].item()

    assert ["values"] == slugs(virtual_gpu)


def test_writes_of_known_values(virtual_gpu):
    """Known values written in place are followed, through views too."""
    tensor = torch.zeros(4, dtype=torch.int64, device="cuda")
    tensor[1:3] += 2
    tensor.view(2, 2)[1, 1] = 7

    assert [0, 2, 2, 7] == tensor.tolist()


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda mask: mask[0].fill_(True), [True, True, False, False]),
        (lambda mask: mask.__setitem__((slice(None), 1), True), [False, True, False, True]),
        (lambda mask: mask.fill_(True), [True, True, True, True]),
        (lambda mask: mask.fill_(True)[1].zero_(), [True, True, False, False]),
    ],
)
def test_filled_views(virtual_gpu, write, expected):
    """What is filled with one number is filled in every view, and in what it is a view of."""
    mask = torch.zeros(2, 2, dtype=torch.bool, device="cuda")
    views = [mask.view(4), mask]
    write(mask)

    assert [expected, expected] == [view.flatten().tolist() for view in views]
    assert "values" not in slugs(virtual_gpu)


def test_writes_do_not_reach_clones(virtual_gpu):
    """A clone keeps its values when the original changes."""
    tensor = torch.zeros(2, device="cuda")
    clone = tensor.clone()
    tensor.fill_(3)

    assert [[0.0, 0.0], [3.0, 3.0]] == [clone.tolist(), tensor.tolist()]


def test_writes_to_the_host(virtual_gpu):
    """Copying from the card into a host tensor writes there."""
    host = torch.zeros(3, dtype=torch.int64)
    host.copy_(on_card(LENGTHS))
    totals = torch.zeros(3)
    totals += on_card([1.0, 2.0, 3.0]).cpu()

    assert LENGTHS == host.tolist()
    assert [1.0, 2.0, 3.0] == totals.tolist()
    assert type(host) is torch.Tensor


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (lambda x: torch.isnan(x).any().item(), False),
        (lambda x: torch.isinf(x).any().item(), False),
        (lambda x: torch.isfinite(x).all().item(), True),
        (lambda x: bool(torch.isnan(x.sum())), False),
    ],
)
def test_values_are_finite(virtual_gpu, ask, answer):
    """A run that works is finite: checks of it pass, and are no stand-ins."""
    assert answer == ask(unknown(8, 8))
    assert [] == slugs(virtual_gpu)


def test_known_masks(virtual_gpu):
    """Known masks select as many elements as they are true for."""
    mask = on_card([[True, False], [True, True]])

    assert (3, 2) == tuple(mask.nonzero().shape)
    assert [(3,), (3,)] == [tuple(index.shape) for index in mask.nonzero(as_tuple=True)]
    assert (3, 5) == tuple(unknown(2, 2, 5)[mask].shape)
    assert (3,) == tuple(unknown(2, 2).masked_select(mask).shape)
    assert (2,) == tuple(on_card([4, 5, 4]).unique().shape)
    assert [[0, 0], [1, 0], [1, 1]] == mask.nonzero().tolist()
    assert "shapes" not in slugs(virtual_gpu)


@pytest.mark.parametrize(
    ("select", "shape"),
    [
        (lambda x: x[x > 0], (12,)),
        (lambda x: x[x[:, 0] > 0], (3, 4)),
        (lambda x: (x > 0).nonzero(), (12, 2)),
        (lambda x: x.masked_select(x > 0), (12,)),
        (lambda x: x.unique(), (12,)),
    ],
)
def test_unknown_masks(virtual_gpu, select, shape):
    """An unknown mask selects everything, an upper bound that is noted with its line."""
    assert shape == tuple(select(unknown(3, 4)).shape)

    (noted,) = virtual_gpu.approximations.records()
    assert "shapes" == noted.slug
    assert "test_values.py:" in noted.what


def test_boolean_assignment_keeps_the_shape(virtual_gpu):
    """Writing through a mask takes no index vectors for a scalar."""
    tensor = unknown(3, 4)
    tensor[tensor > 0] = 0.0

    assert (3, 4) == tuple(tensor.shape)


def test_gradient_of_a_boolean_index(virtual_gpu):
    """A loss over the tokens that a known mask selects has a gradient of the full shape."""
    logits = nn.Parameter(unknown(2, 2, 5))
    logits[on_card([[True, False], [True, True]])].sum().backward()

    assert (2, 2, 5) == tuple(logits.grad.shape)


def test_big_tensors_on_the_host(virtual_gpu):
    """A copy of 4 GiB to the host has its shape and costs nothing until it is touched."""
    copied = unknown(1 << 30).cpu()

    assert (1 << 30, "cpu") == (copied.numel(), copied.device.type)
    assert type(copied) is torch.Tensor


def test_numpy(virtual_gpu):
    """`.cpu().numpy()` gives an array of the values."""
    pytest.importorskip("numpy")

    assert LENGTHS == on_card(LENGTHS).cpu().numpy().tolist()
    assert (2, 3) == unknown(2, 3).detach().cpu().numpy().shape


@pytest.mark.parametrize(
    ("read", "is_noted"),
    [
        (lambda: unknown(8).cpu(), False),
        (lambda: unknown(1).cpu(), True),
        (lambda: unknown(8).argmax().cpu(), True),
        (lambda: (unknown(8) > 0).cpu(), True),
        (lambda: on_card(LENGTHS).cpu(), False),
        (lambda: torch.nn.Parameter(torch.ones(8)).detach().numpy(), True),
    ],
    ids=["activations", "a loss", "a token", "a mask", "known ones", "weights"],
)
def test_stand_ins_on_the_host_are_noted(virtual_gpu, read, is_noted):
    """Those that decide something there: numbers that a script counts with, and what goes to numpy."""
    pytest.importorskip("numpy")
    read()

    assert is_noted == ("values" in slugs(virtual_gpu))


def test_numpy_of_the_card(virtual_gpu):
    """`.numpy()` of a tensor on the card is refused, as on a real one."""
    with pytest.raises(TypeError):
        torch.ones(2, device="cuda").numpy()


def test_bytes_of_a_read(virtual_gpu):
    """Reading a known scalar takes no memory beyond the sum itself: 8 bytes."""
    lengths = on_card(LENGTHS)
    with births_on(virtual_gpu) as births:
        lengths.sum().item()

    assert [8] == requested(births)


def test_uninitialised_memory(virtual_gpu):
    """What nobody wrote reads as zeros, in every run alike, and can be written piece by piece."""
    for _ in range(8):
        torch.full((1000,), 7)
        made = torch.empty(1000, dtype=torch.int64, device="cuda")

        assert [0] * 1000 == made.tolist()

    made[on_card(LENGTHS)] = 5

    assert [0, 5, 5, 5, 0] == made[:5].tolist()


def test_packed_sequences(virtual_gpu):
    """Padding and packing by lengths of the host has the real sizes: 3 + 1 + 2 rows."""
    packed = nn.utils.rnn.pack_padded_sequence(unknown(3, 3, 4), LENGTHS, batch_first=True, enforce_sorted=False)
    padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)

    assert (6, 4) == tuple(packed.data.shape)
    assert (3, 3, 4) == tuple(padded.shape)
    assert LENGTHS == lengths.tolist()


def test_large_results_on_the_host_stay_real(virtual_gpu):
    """What an evaluation takes to the CPU, casts, collects and hands to numpy is real, whatever its values."""
    np = pytest.importorskip("numpy")
    logits = torch.ones(400, 500, device="cuda", dtype=torch.bfloat16)
    collected = torch.cat([logits.cpu().float().clone(), logits.float().cpu()])

    assert type(collected) is torch.Tensor
    assert ((800, 500), np.float32) == (np.asarray(collected).shape, np.asarray(collected).dtype)
    assert 800 == len(np.argsort(np.asarray(collected), axis=1))


def test_arrays_of_parameters_on_the_host(virtual_gpu):
    """numpy takes parameters on the CPU, which are fake, in any dtype."""
    np = pytest.importorskip("numpy")
    weight = torch.nn.Linear(3, 2).weight.detach()

    assert (2, 3) == np.asarray(weight).shape
    assert np.float64 == np.asarray(weight, dtype=np.float64).dtype


def patches_of(mask):
    """How many of 16 patches of each image the mask of its pixels keeps."""
    patches = torch.nn.functional.interpolate(mask[:, None].float(), size=(4, 4)).long()
    return patches.flatten(1).sum(1).tolist()


def test_large_masks_as_floats(virtual_gpu):
    """A mask of pixels keeps its values when it becomes one of patches."""
    mask = torch.ones(2, 128, 128, device="cuda", dtype=torch.int64)
    mask[1, 64:] = 0

    assert [16, 8] == patches_of(mask)


def test_large_masks_of_floats(virtual_gpu):
    """So does one that was made of ones; written to where nobody knows, it has none."""
    mask = torch.ones(2, 128, 128, device="cuda")

    assert [16, 16] == patches_of(mask)
    mask[0, :10, :10].copy_(unknown(10, 10))
    assert "values" not in slugs(virtual_gpu)
    assert [16, 16] != patches_of(mask)
