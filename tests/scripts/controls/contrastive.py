"""Train two towers on pairs; every other pair of the batch is a negative. In one batch, in parts, or by GradCache."""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--grad-cache", action="store_true", help="embeds twice: once for the loss, once for the gradient")
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()


def tower() -> nn.Sequential:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))


def loss_of(left, right):
    similarity = normalize(left) @ normalize(right).T / 0.1
    return cross_entropy(similarity, torch.arange(len(left)))


def backward_by_parts(parts):
    """Each part has only its own negatives."""
    losses = [loss_of(model["left"](left), model["right"](right)) / len(parts) for left, right in parts]
    for loss in losses:
        loss.backward()
    return sum(losses)


def backward_by_grad_cache(parts):
    """The gradient of the whole batch's loss by the embeddings, then by the weights, a part at a time."""
    with torch.no_grad():
        embedded = [[model["left"](left), model["right"](right)] for left, right in parts]
    left, right = (torch.cat(side).requires_grad_() for side in zip(*embedded, strict=True))
    loss = loss_of(left, right)
    loss.backward()
    grads = zip(left.grad.chunk(len(parts)), right.grad.chunk(len(parts)), strict=True)
    for (a, b), grad in zip(parts, grads, strict=True):
        torch.autograd.backward([model["left"](a), model["right"](b)], grad)
    return loss


torch.manual_seed(0)
model = nn.ModuleDict({"left": tower(), "right": tower()})
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
data = torch.Generator().manual_seed(1)
for step in range(args.steps):
    left = torch.randn(16, 16, generator=data)
    right = left + 0.5 * torch.randn(16, 16, generator=data)
    parts = list(zip(left.chunk(args.accumulate), right.chunk(args.accumulate), strict=True))
    loss = backward_by_grad_cache(parts) if args.grad_cache else backward_by_parts(parts)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item())
