"""Random rows with the labels of a random linear teacher."""

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


class TableData(L.LightningDataModule):
    def __init__(self, rows, features, classes, batch_size, num_workers):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage):
        rows = torch.randn(self.hparams.rows, self.hparams.features)
        labels = (rows @ torch.randn(self.hparams.features, self.hparams.classes)).argmax(1)
        self.train_set, self.val_set = random_split(TensorDataset(rows, labels), [0.75, 0.25])

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return self._loader(self.val_set)

    def _loader(self, dataset, **how):
        workers = self.hparams.num_workers
        return DataLoader(
            dataset,
            self.hparams.batch_size,
            num_workers=workers,
            persistent_workers=workers > 0,
            pin_memory=True,
            **how,
        )
