"""Train a small convolutional network with batch normalisation, checkpointed or in micro-batches."""

import argparse
from contextlib import contextmanager, nullcontext

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", default="none", choices=["none", "blocks", "statistics-once"])
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--norm", default="batch", choices=["batch", "group"])
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()


def block(channels_in: int, channels_out: int) -> nn.Sequential:
    norm = nn.BatchNorm2d(channels_out) if args.norm == "batch" else nn.GroupNorm(4, channels_out)
    return nn.Sequential(nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1), norm, nn.ReLU())


@contextmanager
def statistics_kept(module: nn.Module):
    """The recomputation normalises by the batch as the forward did, and leaves the running statistics alone."""
    norms = [m for m in module.modules() if isinstance(m, nn.BatchNorm2d)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
            norm.num_batches_tracked -= 1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([block(3, 8), block(8, 16), block(16, 16)])
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        for layer in self.blocks:
            if args.checkpoint == "none":
                x = layer(x)
            elif args.checkpoint == "blocks":
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                once = lambda layer=layer: (nullcontext(), statistics_kept(layer))  # noqa: E731
                x = checkpoint(layer, x, use_reentrant=False, context_fn=once)
        return self.head(x.mean((2, 3)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
data = torch.Generator().manual_seed(1)
for step in range(args.steps):
    images, labels = (
        torch.randn(args.batch, 3, 16, 16, generator=data),
        torch.randint(10, (args.batch,), generator=data),
    )
    images = images.to(torch.get_default_dtype())
    for part, targets in zip(images.chunk(args.accumulate), labels.chunk(args.accumulate), strict=True):
        loss = nn.functional.cross_entropy(model(part), targets) / args.accumulate
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, "loss", loss.item() * args.accumulate)
