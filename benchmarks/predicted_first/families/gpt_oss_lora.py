"""Post-training of a GPT-OSS-like mixture of experts: LoRA on the attention and on the experts' own parameters, Trainer."""

import tempfile

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import AutoModelForCausalLM, GptOssConfig, Trainer, TrainingArguments, default_data_collator


class Chats(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        ids = torch.randint(5, 100000, (1024,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": ids, "labels": ids.masked_fill(torch.arange(1024) < 256, -100)}


config = GptOssConfig(
    vocab_size=100352, hidden_size=1920, intermediate_size=1920, num_hidden_layers=12, num_local_experts=16, num_experts_per_tok=4,
    num_attention_heads=32, num_key_value_heads=8, head_dim=64, sliding_window=128, use_cache=False,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation="eager")
model = get_peft_model(
    model,
    LoraConfig(
        r=8, lora_alpha=16, target_modules="all-linear", target_parameters=["7.mlp.experts.gate_up_proj", "7.mlp.experts.down_proj"],
    ),
)
model.print_trainable_parameters()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, learning_rate=2e-4, per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=4, bf16=True,
        gradient_checkpointing=True, gradient_checkpointing_kwargs={"use_reentrant": False}, optim="adamw_torch_fused",
        lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": 0.1}, warmup_steps=1, logging_steps=1,
        save_strategy="no", report_to=[],
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Chats(), data_collator=default_data_collator)
    trainer.train()
