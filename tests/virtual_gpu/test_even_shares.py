"""Mixtures of experts: which rows go to which expert is unknown, how many go to all of them is not."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from peaksight.virtual_gpu.tensors.true_counts import bound

from .cards import slugs

pytestmark = pytest.mark.torch

ROWS, EXPERTS, PICKS = 50, 8, 2
EVEN = [13] * 4 + [12] * 4
# Too many to be drawn on the host.
MANY = 8_000_000


def picked():
    """For each row the two best of eight experts."""
    return torch.randn(ROWS, EXPERTS, device="cuda").softmax(-1).topk(PICKS).indices


def by_comparison():
    """`where(picked == expert)`, in a loop."""
    experts = picked()
    return [torch.where(experts == expert)[0].numel() for expert in range(EXPERTS)]


def by_flat_mask():
    """Rows are repeated for each pick, and selected by a mask."""
    experts, rows = picked().view(-1), torch.randn(ROWS * PICKS, 4, device="cuda")
    return [len(rows[experts == expert]) for expert in range(EXPERTS)]


def by_one_hot():
    """transformers' loop: a mask for each expert."""
    mask = F.one_hot(picked(), EXPERTS).permute(2, 1, 0)
    return [torch.where(mask[expert])[1].numel() for expert in range(EXPERTS)]


def by_bincount():
    """Rows are sorted, and split by how many each expert has."""
    experts = picked().flatten()
    counts = torch.bincount(experts[experts.argsort()], minlength=EXPERTS).tolist()
    return [len(part) for part in torch.randn(ROWS * PICKS, 4, device="cuda").split(counts)]


def by_histogram():
    """Experts are sorted, and their histogram is where each begins: transformers' grouped products."""
    experts, _order = torch.sort(picked().flatten())
    counts = torch.histc(experts.int(), bins=EXPERTS, min=0, max=EXPERTS - 1)
    ends = torch.cumsum(counts, 0, dtype=torch.int32).tolist()
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def by_one_hot_within_capacity():
    """transformers' Switch: a mask leaves out rows beyond an expert's capacity; a tensor says which expert."""
    ones = F.one_hot(picked(), EXPERTS)
    mask = (ones * (ones.cumsum(0) <= ROWS)).permute(2, 1, 0)
    experts = (mask.sum((-1, -2)) > 0).nonzero()
    return [torch.where(mask[expert].squeeze(0))[1].numel() for expert in experts]


@pytest.mark.parametrize(
    "sizes", [by_histogram, by_comparison, by_flat_mask, by_one_hot, by_one_hot_within_capacity, by_bincount]
)
def test_experts(virtual_gpu, sizes):
    """Every expert has an even share, and no row is lost."""
    assert EVEN == sizes()
    assert "shapes" in slugs(virtual_gpu)


@pytest.mark.parametrize(
    ("pick", "expected"),
    [
        (lambda: torch.randn(100, 10, device="cuda").argmax(-1), 10),
        (lambda: torch.randn(100, 10, device="cuda").max(-1).indices, 10),
        (lambda: torch.randint(0, 10, (MANY,), device="cuda"), MANY // 10),
        (lambda: torch.randint(10, (MANY,), device="cuda"), MANY // 10),
        (lambda: torch.randint(0, 1000, (MANY,), device="cuda") % 10, MANY // 10),
        (lambda: torch.multinomial(torch.rand(100, 10, device="cuda"), 1).squeeze(1), 10),
        (
            lambda: torch.cat([torch.randint(0, 10, (MANY,), device="cuda") for _ in range(2)]).to(torch.int32),
            MANY // 5,
        ),
        (lambda: torch.randint(-5, 5, (MANY,), device="cuda"), MANY),
        (lambda: torch.randn(100, device="cuda").long(), 100),
    ],
)
def test_picks(virtual_gpu, pick, expected):
    """What picks one of so many is each as often; other numbers may all be the same."""
    assert expected == len((pick() == 3).nonzero())


def test_out_of_range(virtual_gpu):
    """No pick is a choice that there is not."""
    assert 0 == len((picked() == EXPERTS).nonzero())


def test_written_to(virtual_gpu):
    """After others were written, nothing is known of the picks."""
    experts = picked()
    experts[:10] = torch.randn(10, PICKS, device="cuda").long()

    assert ROWS * PICKS == len((experts == 3).nonzero())


def test_written_to_after_a_bound(virtual_gpu):
    """Nor after more was noted of them."""
    experts = picked()
    bound(experts, 30)
    experts[:10] = torch.randn(10, PICKS, device="cuda").long()

    assert ROWS * PICKS == len((experts == 3).nonzero())


def test_experts_that_are_hit(virtual_gpu):
    """A loop over the experts that any row picked comes to each of them."""
    is_hit = F.one_hot(picked(), EXPERTS).sum((0, 1)) > 0

    assert list(range(EXPERTS)) == [int(expert[0]) for expert in is_hit.nonzero()]


def test_classes_of_boxes(virtual_gpu):
    """A detector takes unknown boxes from a row of all classes, and goes through the classes that there are."""
    classes = torch.arange(1, 9, device="cuda").expand(1000, 8).reshape(-1)
    kept = classes[torch.where(torch.randn(8000, device="cuda") > 0)[0]]
    counts = [len(torch.where(kept == each)[0]) for each in torch.unique(kept)]

    assert [889] * 8 == counts


def test_classes_that_are_written(virtual_gpu):
    """What writes other numbers among them ends what is known of how many there are."""
    kept = torch.arange(8, device="cuda").repeat(1000)[torch.where(torch.randn(8000, device="cuda") > 0)[0]]
    kept[:10] = torch.randn(10, device="cuda").argmax()

    assert 8000 == len(torch.unique(kept))


@pytest.mark.parametrize("num_labels", [100, 103, 7])
def test_ranges_of_choices_add_up(virtual_gpu, num_labels):
    """Labels that a teacher gives, cluster by cluster."""
    labels = torch.randn(num_labels, 50, device="cuda").argmax(-1)
    clusters = [(0, 10), (10, 30), (30, 50)]
    sizes = [len(((labels >= low) & (labels < high)).nonzero()) for low, high in clusters]

    assert num_labels == sum(sizes)
    assert sizes == [sum(label % 50 in range(*cluster) for label in range(num_labels)) for cluster in clusters]
    assert len(labels[labels > 9]) + len(labels[labels <= 9]) == num_labels


def test_what_is_written_to_a_mask_is_not_of_a_range(virtual_gpu):
    """As with any bound."""
    labels = torch.randn(100, 50, device="cuda").argmax(-1)
    low, high = labels < 10, labels >= 10
    low[torch.randn(5, 100, device="cuda").argmax(-1)] = True

    assert 25 == len(low.nonzero())
    assert 25 == len((low & high).nonzero())


def test_an_adaptive_softmax_finds_every_label(virtual_gpu):
    """Which it counts, and trains."""
    loss = nn.AdaptiveLogSoftmaxWithLoss(16, 100, [10, 40]).cuda()
    loss(torch.randn(64, 16, device="cuda"), torch.randint(100, (64,), device="cuda")).loss.backward()

    assert all(parameter.grad is not None for parameter in loss.parameters())


def test_masks_spread_over_each_other(virtual_gpu):
    """Of pairs nothing is known, also where either mask is known."""
    experts = picked().flatten()

    assert len(((experts[:, None] >= 1) & (experts[None] < 2)).nonzero()) > ROWS * PICKS
