"""run_clm's recipe: BLOOM with ALiBi, reentrant checkpoints, bf16, noisy embeddings, SGD, logits reduced before they are gathered."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import BloomConfig, BloomForCausalLM, Trainer, TrainingArguments, default_data_collator

BLOCK = 1024


class Blocks(Dataset):
    def __init__(self, count):
        self.ids = torch.randint(5, 250000, (count, BLOCK), generator=torch.Generator().manual_seed(count))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index].tolist()
        return {"input_ids": ids, "attention_mask": [1] * BLOCK, "labels": ids}


def preprocess_logits_for_metrics(logits, labels):
    if isinstance(logits, tuple):
        logits = logits[0]
    return logits.argmax(dim=-1)


def compute_metrics(prediction):
    preds, labels = prediction
    return {"accuracy": float((labels[:, 1:].reshape(-1) == preds[:, :-1].reshape(-1)).mean())}


config = BloomConfig(vocab_size=250880, hidden_size=1536, n_layer=16, n_head=16, hidden_dropout=0.1, attention_dropout=0.1)
model = BloomForCausalLM(config)
print(f"{model.num_parameters() / 1e6:.0f}M parameters")
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=4, per_device_eval_batch_size=2, max_steps=4, bf16=True, optim="sgd",
        optim_args="momentum=0.9", learning_rate=1e-3, gradient_checkpointing=True,
        gradient_checkpointing_kwargs={"use_reentrant": True}, neftune_noise_alpha=5.0, max_grad_norm=0.5, eval_strategy="steps",
        eval_steps=2, save_strategy="no", logging_steps=1, report_to=[], dataloader_drop_last=True,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=Blocks(32), eval_dataset=Blocks(10), data_collator=default_data_collator,
        compute_metrics=compute_metrics, preprocess_logits_for_metrics=preprocess_logits_for_metrics,
    )
    trainer.train()
    print(trainer.evaluate())
