"""transformers' Trainer with `auto_find_batch_size`: a GPT-2 in bf16, an evaluation at the end."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Text(Dataset):
    def __init__(self, size):
        self.ids = torch.randint(0, 30000, (size, 384), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=30000, n_layer=8, n_embd=768, n_head=12))
with tempfile.TemporaryDirectory() as directory:
    arguments = TrainingArguments(
        directory,
        per_device_train_batch_size=64,
        per_device_eval_batch_size=32,
        auto_find_batch_size=True,
        max_steps=4,
        bf16=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=1,
        dataloader_num_workers=0,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Text(512), eval_dataset=Text(64))
    trainer.train()
    print(trainer.evaluate())
