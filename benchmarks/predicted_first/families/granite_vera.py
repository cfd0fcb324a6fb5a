"""Granite with peft's VeRA: one frozen pair of random matrices for all layers, noisy embeddings, tokens counted, metrics by batch."""

import tempfile

import torch
from peft import VeraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import DataCollatorForSeq2Seq, GraniteConfig, GraniteForCausalLM, Trainer, TrainingArguments


class Dialogues(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        draw = torch.Generator().manual_seed(index)
        length = 200 + 37 * index % 820
        ids = torch.randint(5, 49000, (length,), generator=draw)
        labels = ids.clone()
        labels[: length // 3] = -100
        return {"input_ids": ids.tolist(), "attention_mask": [1] * length, "labels": labels.tolist()}


class Padder:
    """What `DataCollatorForSeq2Seq` asks of a tokenizer."""
    padding_side, pad_token_id = "right", 0

    def pad(self, features, padding=True, max_length=None, pad_to_multiple_of=None, return_tensors=None):
        width = max(len(row["input_ids"]) for row in features)
        width = -(-width // pad_to_multiple_of) * pad_to_multiple_of
        fill = {"input_ids": 0, "attention_mask": 0}
        return {key: torch.tensor([row[key] + [value] * (width - len(row[key])) for row in features]) for key, value in fill.items()}


class Accuracy:
    right = seen = 0

    def __call__(self, prediction, compute_result):
        guess, labels = prediction.predictions[:, :-1], prediction.label_ids[:, 1:]
        kept = labels != -100
        self.right, self.seen = self.right + (guess == labels)[kept].sum().item(), self.seen + kept.sum().item()
        return {"accuracy": self.right / self.seen} if compute_result else {}


torch.manual_seed(0)
config = GraniteConfig(
    vocab_size=49152, hidden_size=2048, intermediate_size=8192, num_hidden_layers=14, num_attention_heads=32, num_key_value_heads=8,
    embedding_multiplier=12.0, attention_multiplier=0.0156, residual_multiplier=0.22, logits_scaling=8.0, tie_word_embeddings=True,
)
model = GraniteForCausalLM(config).to(torch.bfloat16)
model = get_peft_model(model, VeraConfig(r=256, target_modules=["q_proj", "v_proj", "gate_proj"], vera_dropout=0.05, d_initial=0.1))
model.print_trainable_parameters()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=6, per_device_eval_batch_size=4, max_steps=4, learning_rate=4e-3, lr_scheduler_type="cosine",
        bf16=True, neftune_noise_alpha=5, include_num_input_tokens_seen="non_padding", batch_eval_metrics=True, eval_strategy="steps",
        eval_steps=4, save_strategy="no", logging_steps=1, report_to=[], label_names=["labels"],
    )
    Trainer(
        model=model, args=arguments, train_dataset=Dialogues(64), eval_dataset=Dialogues(10),
        data_collator=DataCollatorForSeq2Seq(Padder(), pad_to_multiple_of=8), compute_metrics=Accuracy(),
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
    ).train()
