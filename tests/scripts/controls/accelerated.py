"""Train a small classifier with accelerate, its gradients accumulated by the library or by hand."""

import argparse
from contextlib import nullcontext

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--context", default="accumulate", choices=["accumulate", "none"])
parser.add_argument("--weighted", action="store_true", help="samples weigh differently, so parts of a batch do too")
parser.add_argument("--scheduler", default="prepared", choices=["prepared", "raw"])
parser.add_argument("--clip", default="never", choices=["never", "synchronised", "always"])
parser.add_argument("--mixed-precision", default="no", choices=["no", "bf16"])
parser.add_argument("--samples", type=int, default=32)
args = parser.parse_args()

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate, mixed_precision=args.mixed_precision)
torch.manual_seed(0)
data = torch.Generator().manual_seed(1)
dataset = TensorDataset(
    torch.randn(args.samples, 20, generator=data),
    torch.randint(5, (args.samples,), generator=data),
    torch.rand(args.samples, generator=data) ** 3 if args.weighted else torch.ones(args.samples),
)
model = nn.Sequential(nn.Linear(20, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
loader = DataLoader(dataset, batch_size=8 // args.accumulate)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if args.scheduler == "prepared":
    scheduler = accelerator.prepare(scheduler)
for number, (x, labels, weights) in enumerate(loader):
    with accelerator.accumulate(model) if args.context == "accumulate" else nullcontext():
        losses = nn.functional.cross_entropy(model(x), labels, reduction="none")
        loss = (losses * weights).sum() / weights.sum()
        accelerator.backward(loss)
        if args.clip == "always" or (args.clip == "synchronised" and accelerator.sync_gradients):
            nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    accelerator.print("batch", number, "loss", loss.item())
