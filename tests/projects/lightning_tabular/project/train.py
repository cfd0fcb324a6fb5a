"""Trains the classifier: `python -m project.train --config configs/small.yaml model.width=512`."""

import lightning as L
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from project.config import load_config
from project.data import TableData
from project.model import TableClassifier


def main():
    config = load_config()
    L.seed_everything(config["seed"], workers=True)
    data = TableData(**config["data"])
    model = TableClassifier(config["data"]["features"], config["data"]["classes"], **config["model"])
    callbacks = [
        ModelCheckpoint("checkpoints", monitor="val/loss", save_last=True, auto_insert_metric_name=False),
        LearningRateMonitor("step"),
    ]
    trainer = L.Trainer(callbacks=callbacks, logger=CSVLogger("logs"), **config["trainer"])
    trainer.fit(model, datamodule=data)
    print(trainer.checkpoint_callback.best_model_path)


if __name__ == "__main__":
    main()
