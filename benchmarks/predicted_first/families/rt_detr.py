"""RT-DETR under the Trainer: hybrid encoder, deformable attention, denoising queries, boxes matched on the host, frozen norms."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import RTDetrConfig, RTDetrForObjectDetection, Trainer, TrainingArguments


class Scenes(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        count = 2 + index % 11
        boxes = torch.rand(count, 4, generator=draw) * 0.4 + 0.1
        labels = torch.randint(0, 80, (count,), generator=draw)
        return {"pixel_values": torch.randn(3, 640, 640, generator=draw), "labels": {"class_labels": labels, "boxes": boxes}}


def collate_fn(batch):
    return {"pixel_values": torch.stack([row["pixel_values"] for row in batch]), "labels": [row["labels"] for row in batch]}


torch.manual_seed(0)
model = RTDetrForObjectDetection(RTDetrConfig(num_labels=80))
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=12, max_steps=4, learning_rate=5e-5, warmup_steps=2, max_grad_norm=0.1, bf16=True,
        save_strategy="no", eval_strategy="no", remove_unused_columns=False, logging_steps=1, report_to=[], dataloader_num_workers=2,
    )
    Trainer(model=model, args=arguments, data_collator=collate_fn, train_dataset=Scenes(80)).train()
