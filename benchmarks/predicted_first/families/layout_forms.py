"""LayoutLMv3 on forms: words with boxes and the page's patches, labels of words, fp16, logits gathered to the host by few, lengths grouped."""

import tempfile

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import LayoutLMv3Config, LayoutLMv3ForTokenClassification, Trainer, TrainingArguments


def form(seed):
    draw = torch.Generator().manual_seed(seed)
    words = int(torch.randint(120, 512, (1,), generator=draw))
    corner = torch.randint(0, 900, (words, 2), generator=draw)
    size = torch.randint(5, 100, (words, 2), generator=draw)
    labels = torch.randint(0, 7, (words,), generator=draw)
    labels[torch.rand(words, generator=draw) < 0.3] = -100
    return {
        "input_ids": torch.randint(4, 50000, (words,), generator=draw), "bbox": torch.cat([corner, corner + size], 1), "labels": labels,
        "pixel_values": torch.randn(3, 224, 224, generator=draw),
    }


def collate_fn(rows):
    ids = [row["input_ids"] for row in rows]
    return {
        "input_ids": pad_sequence(ids, batch_first=True, padding_value=1),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], batch_first=True),
        "bbox": pad_sequence([row["bbox"] for row in rows], batch_first=True),
        "labels": pad_sequence([row["labels"] for row in rows], batch_first=True, padding_value=-100),
        "pixel_values": torch.stack([row["pixel_values"] for row in rows]),
    }


def compute_metrics(prediction):
    kept = prediction.label_ids != -100
    return {"accuracy": float((prediction.predictions.argmax(2) == prediction.label_ids)[kept].mean())}


torch.manual_seed(0)
model = LayoutLMv3ForTokenClassification(LayoutLMv3Config(num_labels=7))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=16, per_device_eval_batch_size=12, eval_accumulation_steps=1, max_steps=3, learning_rate=1e-5,
        fp16=True, train_sampling_strategy="group_by_length", optim="rmsprop", warmup_steps=1, eval_strategy="steps", eval_steps=3,
        save_strategy="no", logging_steps=1, report_to=[], remove_unused_columns=False, label_names=["labels"],
    )
    Trainer(
        model=model, args=arguments, train_dataset=[form(seed) for seed in range(64)],
        eval_dataset=[form(seed) for seed in range(1000, 1030)], data_collator=collate_fn,
        compute_metrics=compute_metrics,
    ).train()
