"""transformers' Trainer on several ranks: `torchrun --nproc-per-node 2 trainer.py`."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.utils.data import Dataset
from train import llama
from transformers import Trainer, TrainingArguments

LENGTH, NUM_SAMPLES = 512, 64


class Tokens(Dataset):
    """Random sequences of one length."""

    def __len__(self):
        """How many."""
        return NUM_SAMPLES

    def __getitem__(self, index):
        """One of them, which is its own labels."""
        tokens = torch.randint(0, 32000, (LENGTH,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def main():
    """Six steps in bfloat16 with accumulation, an evaluation, and a checkpoint."""
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    with tempfile.TemporaryDirectory() as directory:
        options = TrainingArguments(
            output_dir=directory,
            per_device_train_batch_size=4,
            per_device_eval_batch_size=4,
            gradient_accumulation_steps=2,
            max_steps=6,
            bf16=True,
            logging_steps=2,
            eval_strategy="steps",
            eval_steps=4,
            save_strategy="no",
            prediction_loss_only=True,
            report_to="none",
        )
        trainer = Trainer(model=llama(), args=options, train_dataset=Tokens(), eval_dataset=Tokens())
        trainer.train()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
