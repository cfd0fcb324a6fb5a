"""Transformers' Trainer on texts of many lengths in groups: disentangled attention, padding to the longest, a class each."""

import sys
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import DebertaV2Config, DebertaV2ForSequenceClassification, Trainer, TrainingArguments


class Texts(Dataset):
    def __init__(self, count):
        generator = torch.Generator().manual_seed(0)
        self.lengths = torch.randint(64, 513, (count,), generator=generator).tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return {"input_ids": [5] * self.lengths[index], "labels": index % 3}


def collate(texts):
    longest = max(len(text["input_ids"]) for text in texts)
    rows = [text["input_ids"] + [0] * (longest - len(text["input_ids"])) for text in texts]
    masks = [[1] * len(text["input_ids"]) + [0] * (longest - len(text["input_ids"])) for text in texts]
    return {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(masks), "labels": torch.tensor([t["labels"] for t in texts])}


torch.manual_seed(0)
config = DebertaV2Config(
    vocab_size=128100, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, num_labels=3,
    relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p",
    type_vocab_size=0, position_biased_input=False, max_relative_positions=-1,
)
model = DebertaV2ForSequenceClassification(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=16, gradient_accumulation_steps=2, num_train_epochs=1, save_strategy="no", bf16=True,
        logging_steps=1, report_to=[], dataloader_num_workers=0, train_sampling_strategy="group_by_length", max_steps=5, learning_rate=2e-5,
    )
    Trainer(model=model, args=arguments, train_dataset=Texts(512), data_collator=collate).train()
sys.stdout.flush()
