"""peft's DoRA with a trained embedding on a Gemma-like decoder under transformers' Trainer: collated lengths, evaluation."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, Qwen3Config, Trainer, TrainingArguments


class Ids(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.randint(5, 60000, (384 + 64 * (index * 7 % 11),), generator=torch.Generator().manual_seed(index))


def collate(rows):
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=0)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": mask, "labels": ids.masked_fill(mask == 0, -100)}


torch.manual_seed(0)
config = Qwen3Config(
    vocab_size=64000, hidden_size=2048, intermediate_size=6144, num_hidden_layers=16, num_attention_heads=16,
    num_key_value_heads=8, head_dim=128, tie_word_embeddings=False,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
adapters = LoraConfig(
    r=32, lora_alpha=64, lora_dropout=0.05, use_dora=True, use_rslora=True, target_modules=["q_proj", "v_proj", "up_proj", "down_proj"],
    modules_to_save=["lm_head"], task_type="CAUSAL_LM",
)
model = get_peft_model(model, adapters)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, per_device_eval_batch_size=4, max_steps=4, bf16=True,
        eval_strategy="steps", eval_steps=4, save_strategy="no", optim="adamw_torch", learning_rate=1e-4, label_smoothing_factor=0.1,
        logging_steps=1, report_to=[], remove_unused_columns=False, train_sampling_strategy="sequential",
    )
    Trainer(model=model, args=arguments, data_collator=collate, train_dataset=Ids(64), eval_dataset=Ids(12)).train()
