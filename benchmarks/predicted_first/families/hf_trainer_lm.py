"""Transformers' Trainer: a Gemma-like decoder, bf16, accumulation, checkpointing, Adafactor, evaluation between the steps."""

import sys
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, Gemma2Config, Trainer, TrainingArguments


class Ids(Dataset):
    def __init__(self, count, length):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        ids = torch.randint(5, 60000, (self.length,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}


torch.manual_seed(0)
config = Gemma2Config(
    vocab_size=64000, hidden_size=1152, intermediate_size=4608, num_hidden_layers=18, num_attention_heads=8,
    num_key_value_heads=4, head_dim=128, sliding_window=512, attn_implementation="eager",
)
model = AutoModelForCausalLM.from_config(config)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, per_device_eval_batch_size=8, max_steps=4,
        eval_strategy="steps", eval_steps=2, save_strategy="no", bf16=True, gradient_checkpointing=True, optim="adafactor",
        logging_steps=1, report_to=[], dataloader_num_workers=0, prediction_loss_only=True,
    )
    Trainer(model=model, args=arguments, train_dataset=Ids(64, 1024), eval_dataset=Ids(16, 1024)).train()
sys.stdout.flush()
