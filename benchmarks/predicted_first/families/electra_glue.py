"""run_glue's recipe: ELECTRA-large, fp16, lengths in groups, label smoothing, logits gathered to the host, the best model loaded again."""

import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import ElectraConfig, ElectraForSequenceClassification, EvalPrediction, Trainer, TrainingArguments, set_seed


class Sentences(Dataset):
    def __init__(self, count, seed):
        draw = np.random.default_rng(seed)
        self.rows = [draw.integers(5, 30000, draw.integers(24, 300)).tolist() for _ in range(count)]
        self.labels = draw.integers(0, 3, count).tolist()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"input_ids": self.rows[index], "label": self.labels[index]}


def collate(rows):
    longest = -(-max(len(row["input_ids"]) for row in rows) // 8) * 8
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    for index, row in enumerate(rows):
        ids[index, : len(row["input_ids"])] = torch.tensor(row["input_ids"])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([row["label"] for row in rows])}


def compute_metrics(prediction: EvalPrediction):
    return {"accuracy": float((np.argmax(prediction.predictions, axis=1) == prediction.label_ids).mean())}


set_seed(42)
config = ElectraConfig(
    embedding_size=1024, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, num_labels=3,
)
model = ElectraForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=32, per_device_eval_batch_size=64, learning_rate=2e-5, max_steps=6, warmup_steps=2,
        fp16=True, train_sampling_strategy="group_by_length", label_smoothing_factor=0.1, eval_strategy="steps", eval_steps=3,
        eval_accumulation_steps=2, save_strategy="steps", save_steps=3, save_total_limit=1, load_best_model_at_end=True,
        metric_for_best_model="accuracy", logging_steps=1, report_to=[], seed=42,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Sentences(2000, 0), eval_dataset=Sentences(320, 1), data_collator=collate,
        compute_metrics=compute_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
    print(trainer.predict(Sentences(100, 2)).predictions.shape)
