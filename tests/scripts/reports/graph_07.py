"""Interaction counts of users and items as a Lightning module, with a summary of every epoch."""

import argparse

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

ITEMS = 6000


class Counts(Dataset):
    def __len__(self):
        return 2048 * 12

    def __getitem__(self, index):
        return torch.randint(5, (ITEMS,))


class Factors(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(ITEMS, 64)
        self.decoder = nn.Linear(64, ITEMS)
        self.training_step_outputs = []

    def training_step(self, x, batch_index):
        counts = x.float()
        loss = (self.decoder(self.encoder(counts)) - counts).square().mean()
        if args.fixed:
            self.training_step_outputs.append({"loss": loss.detach()})
        else:
            self.training_step_outputs.append({"loss": loss.detach(), "x": x})
        return loss

    def on_train_epoch_end(self):
        losses = torch.stack([output["loss"] for output in self.training_step_outputs])
        self.log("epoch_loss", losses.mean())
        self.training_step_outputs.clear()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


trainer = L.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False)
trainer.fit(Factors(), DataLoader(Counts(), batch_size=2048))
