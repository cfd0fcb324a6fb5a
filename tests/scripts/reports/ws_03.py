"""Trains a small language model with an optimizer that projects gradients onto their singular vectors."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

VOCABULARY, WIDTH = 32768, 256


class LowRankSGD(torch.optim.Optimizer):
    """SGD in the space of the first `rank` right singular vectors of a gradient, renewed every `every` steps."""

    def __init__(self, parameters, lr=1e-2, rank=32, every=2):
        super().__init__(parameters, {"lr": lr, "rank": rank, "every": every})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                step = state["step"] = state.get("step", -1) + 1
                grad = parameter.grad if parameter.shape[0] < parameter.shape[1] else parameter.grad.T
                if step % group["every"] == 0:
                    _, _, vh = torch.linalg.svd(grad, full_matrices=not args.fixed)
                    state["basis"] = vh[: group["rank"]].clone()
                update = grad @ state["basis"].T @ state["basis"]
                parameter.sub_((update if update.shape == parameter.shape else update.T), alpha=group["lr"])


model = nn.Sequential(
    nn.Embedding(VOCABULARY, WIDTH),
    nn.Linear(WIDTH, 4 * WIDTH, bias=False),
    nn.GELU(),
    nn.Linear(4 * WIDTH, WIDTH, bias=False),
    nn.Linear(WIDTH, VOCABULARY, bias=False),
).cuda()
optimizer = LowRankSGD(model.parameters())

for step in range(6):
    tokens = torch.randint(VOCABULARY, (2, 257)).cuda()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
