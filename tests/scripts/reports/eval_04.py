"""Classifies spoken words with the encoder of Whisper and a weighted sum of its layers."""

import argparse

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, WhisperConfig, WhisperForAudioClassification

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Words(torch.utils.data.Dataset):
    """Log-mel spectrograms of 30 seconds."""

    def __init__(self, number):
        self.labels = torch.randint(35, (number,)).tolist()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_features": torch.zeros(80, 3000), "labels": self.labels[index]}


def compute_metrics(prediction):
    logits = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
    return {"accuracy": float((np.argmax(logits, axis=-1) == prediction.label_ids).mean())}


def logits_only(predictions, labels):
    return predictions[0]


config = WhisperConfig(
    d_model=256,
    encoder_layers=6,
    encoder_attention_heads=4,
    encoder_ffn_dim=1024,
    use_weighted_layer_sum=True,
    num_labels=35,
)
trainer = Trainer(
    model=WhisperForAudioClassification(config),
    args=TrainingArguments(
        output_dir="words",
        per_device_train_batch_size=2,
        per_device_eval_batch_size=16,
        max_steps=2,
        report_to=[],
        save_strategy="no",
    ),
    train_dataset=Words(16),
    eval_dataset=Words(128),
    compute_metrics=compute_metrics,
    preprocess_logits_for_metrics=logits_only if args.fixed else None,
)
trainer.train()
print(trainer.evaluate())
