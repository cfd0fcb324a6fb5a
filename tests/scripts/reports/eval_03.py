"""Fine-tunes a BERT classifier with the Trainer and reports its accuracy."""

import argparse

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Reviews(torch.utils.data.Dataset):
    """Made-up reviews of 256 tokens."""

    def __init__(self, number):
        self.input_ids = torch.randint(1000, 30000, (number, 256))
        self.labels = torch.randint(2, (number,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        ids = self.input_ids[index]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": self.labels[index]}


def compute_metrics(prediction):
    logits = prediction.predictions[0] if isinstance(prediction.predictions, tuple) else prediction.predictions
    return {"accuracy": float((np.argmax(logits, axis=-1) == prediction.label_ids).mean())}


config = BertConfig(hidden_size=384, num_hidden_layers=12, num_attention_heads=6, intermediate_size=1536)
config.output_hidden_states = True
model = BertForSequenceClassification(config)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="reviews",
        per_device_train_batch_size=8,
        per_device_eval_batch_size=32,
        max_steps=2,
        report_to=[],
        save_strategy="no",
    ),
    train_dataset=Reviews(64),
    eval_dataset=Reviews(320),
    compute_metrics=compute_metrics,
)
trainer.train()
print(trainer.evaluate(ignore_keys=["hidden_states"] if args.fixed else None))
