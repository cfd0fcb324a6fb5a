"""What autograd saves, by which names the script reaches its tensors, and what its modules and optimizers are."""

import gc

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from peaksight.errors import StopSimulation
from peaksight.records import Action
from peaksight.units import MIB

from .cards import h100

pytestmark = pytest.mark.torch

ROWS, WIDTH = 4096, 256
ACTIVATION_BYTES = 4 * ROWS * WIDTH


def model():
    """Two layers with an activation between them."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)).cuda()


def batch():
    """Rows on the card."""
    return torch.randn(ROWS, WIDTH, device="cuda")


def births_of(gpu, op):
    """The blocks taken for results of `op`, in order."""
    return [birth for birth in gpu.ledger.births if birth.op == op or birth.op.startswith(f"{op}.")]


def names(gpu, birth):
    """By which names `birth` was reached, each once, with a star where its graph holds it."""
    found = [hold for hold in gpu.witness.holds_on(0) if hold.born == birth.born]
    return list(dict.fromkeys(hold.name + "*" * hold.by_graph for hold in found))


def test_the_node_that_saves_an_activation_is_named():
    """A block is saved by the node that needs it: tanh its result, the next layer too, so the first found counts."""
    with h100() as gpu:
        loss = model()(batch()).square().mean()
        loss.backward()
    (tanh,) = births_of(gpu, "aten::tanh")
    first, second = births_of(gpu, "aten::addmm")

    assert (tanh.saved_by, tanh.backward) in {("TanhBackward0", 1), ("AddmmBackward0", 1)}
    assert (second.saved_by, second.backward) == ("PowBackward0", 1)
    assert (first.saved_by, first.backward) == ("", 0)


def test_a_view_saves_the_storage_that_it_is_of():
    """GIVEN a product with a view, THEN the block behind it is saved."""
    with h100() as gpu:
        x = (batch() * 2).requires_grad_()
        (x.view(ROWS // 2, -1)[:, :WIDTH] @ torch.randn(WIDTH, 8, device="cuda", requires_grad=True)).sum().backward()
    (block,) = births_of(gpu, "aten::mul")

    assert (block.saved_by, block.backward, block.tensor) == ("MmBackward0", 1, f"float32[{ROWS}, {WIDTH}]")


def test_what_an_operator_does_in_place_is_saved_with_its_block():
    """The block of a result that relu_ changed is what relu_ saves."""
    with h100() as gpu:
        layer = nn.Linear(WIDTH, WIDTH).cuda()
        layer(batch()).relu_().sum().backward()
    (block,) = births_of(gpu, "aten::addmm")

    assert block.saved_by == "ReluBackward0"


def test_nothing_of_a_checkpoint_is_unpacked_by_a_look():
    """Its forward runs once more, in the backward, and what it computes there is not known to be saved."""
    runs = []

    def part(layers, x):
        runs.append(1)
        return layers(x)

    with h100() as gpu:
        checkpoint(part, model(), batch().requires_grad_(), use_reentrant=False).sum().backward()

    assert len(runs) == 2
    assert [birth.backward for birth in births_of(gpu, "aten::tanh")] == [0, 0]


def one_of_two_forwards():
    """A function without assertions, which look at `locals()`: such a one is not looked at."""
    layers = model()
    unused = layers(batch())
    layers(batch()).sum().backward()
    return unused


def test_a_graph_that_no_backward_goes_through():
    """GIVEN a second forward that nothing comes of, THEN no pass came to what it saved, but its name is known."""
    with h100() as gpu:
        one_of_two_forwards()
    first, second = births_of(gpu, "aten::tanh")

    assert (first.backward, second.backward) == (0, 1)
    assert first.saved_by
    assert names(gpu, first) == ["unused*"]


def test_a_tied_weight_is_the_first_module_s():
    """GIVEN a weight in two modules, THEN its block has the first one's name and is there once."""
    with h100() as gpu:
        layers = nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False))
        layers[1].weight = layers[0].weight
        layers.cuda()(batch()).sum().backward()
    weights = [birth for birth in gpu.ledger.births if birth.role.value == "parameter"]

    assert [birth.module for birth in weights] == ["Sequential.0"]


class Kept:
    """An object that keeps what it is given."""

    def __init__(self):
        self.maps = {}


def train(keep):
    """Three steps; `keep` is given the output of each."""
    layers = model()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for step in range(3):
        output = layers(batch())
        keep(step, output)
        output.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def test_retained_outputs_have_names():
    """In a list of a closure, and in a dictionary of an object."""
    outputs, kept = [], Kept()

    def keep(step, output):
        outputs.append(output.detach())
        kept.maps[f"step {step}"] = output + 1

    with h100(max_steps=3) as gpu, pytest.raises(StopSimulation):
        train(keep)
    second = births_of(gpu, "aten::addmm")[1]
    sums = births_of(gpu, "aten::add")

    assert "outputs[0]" in names(gpu, second)
    assert names(gpu, sums[0]) == ["kept.maps['step 0']"]


def test_a_part_of_a_block_that_is_kept_tells_how_much_it_shows():
    """GIVEN the first row of each output, THEN its storage is the whole output."""
    rows = []
    with h100(max_steps=3) as gpu, pytest.raises(StopSimulation):
        train(lambda _, output: rows.append(output[:1].detach()))
    block = births_of(gpu, "aten::addmm")[1]
    hold = next(hold for hold in gpu.witness.holds_on(0) if hold.born == block.born and hold.name.startswith("rows"))

    assert (hold.shown_bytes, block.requested_bytes) == (4 * WIDTH, ACTIVATION_BYTES)


def test_a_look_keeps_nothing_alive():
    """GIVEN looks in every step, THEN each output dies as it does without them."""
    with h100(max_steps=3) as gpu, pytest.raises(StopSimulation):
        train(lambda step, output: None)
    gc.collect()
    tanhs = births_of(gpu, "aten::tanh")
    steps = gpu.ledger.steps

    assert all(birth.died <= step.last_tick for birth, step in zip(tanhs[:2], steps, strict=False))


def test_an_object_that_cannot_be_looked_at_is_passed_over():
    """Whatever its attributes raise, names beside it are found."""

    class Odd:
        @property
        def __dict__(self):
            raise ValueError("not for you")

    odd, outputs = Odd(), []
    with h100(max_steps=3) as gpu, pytest.raises(StopSimulation):
        train(lambda step, output: (odd, outputs.append(output.detach())))
    block = births_of(gpu, "aten::addmm")[1]

    assert not gpu.witness.has_failed
    assert "outputs[0]" in names(gpu, block)


def test_modules_and_optimizers():
    """What they train, and with which state."""
    with h100(max_steps=2) as gpu, pytest.raises(StopSimulation):
        layers = model()
        layers[0].requires_grad_(False)
        optimizer = torch.optim.AdamW(layers.parameters())
        while True:
            layers(batch()).sum().backward()
            optimizer.step()
    facts = {fact.module: fact for fact in gpu.witness.modules.facts}
    first, last = facts["Sequential.0"], facts["Sequential.2"]
    rows = {row.frozen: row for row in gpu.witness.optimizers.facts}

    assert (first.frozen_bytes, last.frozen_bytes) == (first.parameter_bytes, 0)
    assert set(facts) == {"Sequential.0", "Sequential.2"}
    assert (rows[False].state_bytes, rows[False].how, rows[False].kind) == (
        2 * last.parameter_bytes,
        "foreach",
        "AdamW",
    )
    assert (rows[True].state_bytes, rows[True].parameter_bytes) == (0, first.parameter_bytes)
    assert last.parameter_bytes > MIB // 4


def test_parameters_that_no_step_uses():
    """Those of a module that is not called, and of one that holds it and is passed over; a trained one has none."""
    with h100(max_steps=2) as gpu, pytest.raises(StopSimulation):
        whole = nn.ModuleDict({"used": model(), "left": nn.Linear(WIDTH, WIDTH, bias=False).cuda()})
        optimizer = torch.optim.SGD(whole.parameters())
        while True:
            whole["used"](batch()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    facts = {fact.module: fact.idle_bytes for fact in gpu.witness.modules.facts}

    assert facts == {"Sequential.0": 0, "Sequential.2": 0, "": 4 * WIDTH * WIDTH}


class Elsewhere(list):
    """A list whose members come from a file as they are asked for."""

    def __iter__(self):
        raise AssertionError("nothing is to be read")


def test_the_networks_of_a_gan_are_not_frozen():
    """GIVEN each needs no gradient in the turn of the other, THEN both train; near miss: one that never does."""
    with h100() as gpu:
        generator, critic, judge = (nn.Linear(64, 64).cuda() for _ in range(3))
        judge.requires_grad_(False)
        turns = [(model, torch.optim.SGD(model.parameters())) for model in (critic, generator)]
        for trained, optimizer in turns * 2:
            for model in (generator, critic):
                model.requires_grad_(model is trained)
            judge(critic(generator(torch.randn(2, 64, device="cuda")))).sum().backward()
            optimizer.step()

    assert [0, 0, 16640] == [fact.frozen_bytes for fact in gpu.witness.modules.facts]


def test_what_is_frozen_after_some_steps_is_frozen():
    """GIVEN an optimizer that goes on with parameters which need no gradient any more, THEN they are not trained."""
    with h100() as gpu:
        body, head = nn.Linear(64, 64).cuda(), nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()])
        for is_frozen in (False, False, True, True):
            body.requires_grad_(not is_frozen)
            head(body(torch.randn(2, 64, device="cuda"))).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    assert [16640, 0] == [fact.frozen_bytes for fact in gpu.witness.modules.facts]


def test_what_a_container_reads_from_elsewhere_is_not_asked_for():
    """GIVEN a list that reads as it is iterated over, THEN only what it holds itself is seen."""
    outputs = Elsewhere()
    with h100(max_steps=3) as gpu, pytest.raises(StopSimulation):
        train(lambda step, output: outputs.append(output.detach()))

    assert "outputs[0]" in names(gpu, births_of(gpu, "aten::addmm")[1])


def backward_of(terms):
    """The terms of a backward pass through their sum, as the operators whose results each saves first."""
    with h100() as gpu:
        sum(terms(model())).backward()
    ops = {birth.born: birth.op for birth in gpu.ledger.births}
    return [(fact.backward, ops[fact.first_born]) for fact in gpu.witness.passes.terms]


def test_terms_without_a_common_graph():
    """GIVEN three batches in one loss, THEN each is a term, from tanh's result on."""
    terms = backward_of(lambda layers: [layers(batch()).square().mean() / 3 for _ in range(3)])

    assert terms == 3 * [(1, "aten::tanh")]


def test_terms_under_autocast():
    """GIVEN weights that are cast once for both, THEN that joins no terms."""

    def two(layers):
        with torch.autocast("cuda", torch.bfloat16):
            return [layers(batch()).square().mean() for _ in range(2)]

    assert len(backward_of(two)) == 2


def test_what_two_terms_share_makes_them_one():
    """GIVEN two losses of one output, or a loss of two outputs, THEN there are no terms."""

    def of_one_output(layers):
        output = layers(batch())
        return [output.square().mean(), output.abs().mean()]

    def of_two_outputs(layers):
        return [(layers(batch()) @ layers(batch()).T).square().mean()]

    assert backward_of(of_one_output) == backward_of(of_two_outputs) == []


def test_terms_that_are_computed_side_by_side():
    """Near miss: the log-determinant of each layer of a flow has its own weight, and the layers go on meanwhile."""

    def of_a_flow(layers):
        x, terms = batch(), []
        for _ in range(3):
            x = layers(x)
            terms.append(torch.linalg.slogdet(torch.randn(8, 8, device="cuda", requires_grad=True)).logabsdet)
        return [*terms, x.square().mean()]

    assert backward_of(of_a_flow) == []


def test_passes():
    """Calls of models with their modes, and what backward passes were asked for."""
    with h100() as gpu:
        layers = model()
        loss = layers(batch()).square().mean()
        loss.backward(retain_graph=True)
        torch.autograd.grad(loss, layers[0].weight, create_graph=True)
        layers.eval()
        with torch.no_grad():
            layers(batch())
    first, second = gpu.witness.passes.calls[0]
    kept, created = gpu.witness.passes.backwards[0]
    (tanh, _) = births_of(gpu, "aten::tanh")

    assert (first.module, first.training, first.recorded) == ("Sequential", True, True)
    assert (second.training, second.recorded) == (False, False)
    assert first.first_tick <= tanh.born <= first.last_tick < kept.tick
    assert [(f.number, f.retains_graph, f.creates_graph) for f in (kept, created)] == [
        (1, True, False),
        (2, True, True),
    ]


def test_a_line_that_empties_the_cache():
    """It is in the call's record."""
    with h100() as gpu:
        batch()
        torch.cuda.empty_cache()

    (call,) = [call for call in gpu.ledger.calls if call.action is Action.EMPTY_CACHE]

    assert "test_evidence.py:" in call.what


def one_evaluation():
    """A function that calls a method with the name of a function that would look at its variables."""
    layers = model()
    layers.eval()
    with torch.no_grad():
        output = layers(batch())
        layers(batch())
    return output


def test_a_method_called_eval_looks_at_no_variables():
    """Its caller is looked at like any other."""
    with h100() as gpu:
        one_evaluation()
    first, *_ = births_of(gpu, "aten::tanh")

    assert names(gpu, births_of(gpu, "aten::addmm")[1]) == ["output"] and first.died


def test_labels_that_are_ignored_are_counted_where_they_arrive():
    """GIVEN two of six are -100, and others that have none, THEN one row."""
    labels = torch.tensor([[1, -100, 3], [-100, 5, 6]])
    with h100() as gpu:
        labels.to("cuda")
        torch.arange(6).to("cuda")
        labels.float().to("cuda")
    (fact,) = gpu.witness.labels.facts[0]

    assert (fact.count, fact.num_ignored) == (6, 2)
    assert fact.born == gpu.ledger.births[0].born


@pytest.mark.parametrize(("ignored", "num_ignored"), [(-100, 40), (0, 41)])
def test_labels_that_are_put_together_on_the_card_are_counted_where_a_loss_reads_them(ignored, num_ignored):
    """GIVEN labels behind 40 positions without any, THEN the loss's own `ignore_index` decides which have none."""
    with h100() as gpu:
        none = torch.full((40,), ignored, device="cuda")
        labels = torch.cat([none, torch.arange(8).cuda()])
        torch.nn.functional.cross_entropy(torch.randn(48, 16, device="cuda"), labels, ignore_index=ignored)
    (fact,) = gpu.witness.labels.facts[0]

    assert (fact.count, fact.num_ignored) == (48, num_ignored)
