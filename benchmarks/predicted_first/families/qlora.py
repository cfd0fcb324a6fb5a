"""QLoRA: a Llama in 4 bits with double quantisation, adapters on every linear layer, a paged 8-bit Adam."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, Trainer, TrainingArguments


class Answers(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(5, 32000, (1024,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids, "attention_mask": torch.ones_like(ids)}


config = LlamaConfig(
    vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=32,
    num_key_value_heads=4,
)
quantization = BitsAndBytesConfig(
    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
)
with tempfile.TemporaryDirectory() as folder:
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, quantization_config=quantization, device_map={"": 0})
    model = prepare_model_for_kbit_training(model)
    model = get_peft_model(model, LoraConfig(r=64, lora_alpha=16, lora_dropout=0.05, target_modules="all-linear"))
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=4, save_strategy="no", bf16=True,
        optim="paged_adamw_8bit", max_grad_norm=0.3, logging_steps=1, report_to=[], gradient_checkpointing=True,
        remove_unused_columns=False,
    )
    Trainer(model=model, args=arguments, train_dataset=Answers()).train()
