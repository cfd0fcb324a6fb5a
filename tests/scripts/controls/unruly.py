"""A training loop that can go wrong: it may fail, train nothing, or change its weights behind the optimizer's back."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fail-at", type=int, help="the step")
parser.add_argument("--exit-at", type=int, help="the step; the exit code says nothing of it")
parser.add_argument("--train", default="all", choices=["all", "nothing", "no-step", "no-backward"])
parser.add_argument("--weight-average", type=float, default=0.0, help="pulls weights to the first ones")
parser.add_argument("--unseeded", action="store_true")
parser.add_argument("--draws-before", type=int, default=0, help="random numbers drawn before the model is built")
parser.add_argument("--skip", type=int, default=0, help="batches left out at the beginning")
parser.add_argument("--scale-inputs", type=float, default=1.0)
parser.add_argument("--dropout", type=float, default=0.0)
parser.add_argument("--bias-error", type=float, default=0.0, help="added to the gradient of one bias, in relation")
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()

if not args.unseeded:
    torch.manual_seed(0)
torch.rand(args.draws_before)
model = nn.Sequential(
    nn.Linear(16, 32), nn.ReLU(), nn.Dropout(args.dropout), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4)
)
first = [parameter.detach().clone() for parameter in model.parameters()]
if args.bias_error:
    model[3].bias.register_hook(lambda grad: grad * (1 + args.bias_error))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = torch.Generator().manual_seed(1)
for step in range(args.steps + args.skip):
    x, y = torch.randn(8, 16, generator=data), torch.randn(8, 4, generator=data)
    if step < args.skip:
        continue
    if step == args.fail_at:
        raise RuntimeError("the data ran out")
    if step == args.exit_at:
        raise SystemExit(0)
    with torch.set_grad_enabled(args.train != "nothing"):
        loss = nn.functional.mse_loss(model(x * args.scale_inputs), y)
    print("step", step, "loss", loss.item())
    if args.train not in ("nothing", "no-backward"):
        loss.backward()
    if args.train != "no-step":
        optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for parameter, start in zip(model.parameters(), first, strict=True):
            parameter.lerp_(start, args.weight_average)
