"""A residual MLP as a LightningModule."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torchmetrics.classification import MulticlassAccuracy


class Residual(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(F.relu(self.up(self.norm(x)))))


class TableClassifier(L.LightningModule):
    def __init__(self, features, classes, width, depth, dropout, lr):
        super().__init__()
        self.save_hyperparameters()
        blocks = [Residual(width, dropout) for _ in range(depth)]
        self.net = nn.Sequential(nn.Linear(features, width), *blocks, nn.Linear(width, classes))
        self.accuracy = MulticlassAccuracy(classes)

    def forward(self, rows):
        return self.net(rows)

    def training_step(self, batch, batch_idx):
        rows, labels = batch
        loss = F.cross_entropy(self(rows), labels)
        self.log("train/loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        rows, labels = batch
        scores = self(rows)
        self.accuracy(scores, labels)
        self.log("val/accuracy", self.accuracy)
        self.log("val/loss", F.cross_entropy(scores, labels), prog_bar=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
