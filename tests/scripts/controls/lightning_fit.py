"""Train a small network with Lightning, its gradients accumulated by the trainer or by hand."""

import argparse
import logging
import warnings

import lightning
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--norm", default="layer", choices=["layer", "batch"])
parser.add_argument("--by-hand", action="store_true", help="manual optimization, with a division that was forgotten")
parser.add_argument("--checkpoint", action="store_true")
parser.add_argument("--clip", type=float)
parser.add_argument("--samples", type=int, default=32)
parser.add_argument("--precision", default="32-true")
args = parser.parse_args()
warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        norm = nn.LayerNorm if args.norm == "layer" else nn.BatchNorm1d
        self.body = nn.Sequential(nn.Linear(20, 64), norm(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 5)
        self.automatic_optimization = not args.by_hand

    def training_step(self, batch, index):
        x, labels = batch
        x = checkpoint(self.body, x, use_reentrant=False) if args.checkpoint else self.body(x)
        loss = nn.functional.cross_entropy(self.head(x), labels)
        if args.by_hand:
            self.manual_backward(loss)
            if (index + 1) % args.accumulate == 0:
                optimizer = self.optimizers()
                optimizer.step()
                optimizer.zero_grad()
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=3e-3)
        if args.by_hand:
            return optimizer
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


lightning.seed_everything(0, verbose=False)
data = torch.Generator().manual_seed(1)
dataset = TensorDataset(
    torch.randn(args.samples, 20, generator=data), torch.randint(5, (args.samples,), generator=data)
)
trainer = lightning.Trainer(
    accelerator="cpu",
    max_epochs=1,
    accumulate_grad_batches=1 if args.by_hand else args.accumulate,
    gradient_clip_val=args.clip,
    precision=args.precision,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Classifier(), DataLoader(dataset, batch_size=8 // args.accumulate))
