"""Fine-tune a tiny GPT-2 with the Trainer of transformers."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--dropout", type=float, default=0.0)
parser.add_argument("--own-loss", action="store_true", help="does not know of num_items_in_batch")
parser.add_argument("--no-average-tokens", action="store_true")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--optim", default="adamw_torch")
parser.add_argument("--max-grad-norm", type=float, default=1.0)
parser.add_argument("--samples", type=int, default=24)
args = parser.parse_args()

VOCABULARY, LONGEST, BATCH, IGNORED = 64, 16, 8, -100


class MeanLossTrainer(Trainer):
    """A loss of our own, the mean over the tokens of the micro-batch."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        logits = model(input_ids=inputs["input_ids"]).logits
        loss = torch.nn.functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORED
        )
        return (loss, {"logits": logits}) if return_outputs else loss


def samples():
    data = torch.Generator().manual_seed(1)
    for _ in range(args.samples):
        tokens = torch.randint(VOCABULARY, (LONGEST,), generator=data)
        length = int(torch.randint(3, LONGEST + 1, (), generator=data))
        yield {"input_ids": tokens, "labels": torch.where(torch.arange(LONGEST) < length, tokens, IGNORED)}


torch.manual_seed(0)
dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), args.dropout)
model = GPT2LMHeadModel(
    GPT2Config(vocab_size=VOCABULARY, n_positions=LONGEST, n_embd=32, n_layer=2, n_head=2, **dropout)
)
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=BATCH // args.accumulate,
    gradient_accumulation_steps=args.accumulate,
    gradient_checkpointing=args.checkpointing,
    average_tokens_across_devices=not args.no_average_tokens,
    bf16=args.bf16,
    optim=args.optim,
    max_grad_norm=args.max_grad_norm,
    learning_rate=1e-3,
    num_train_epochs=1,
    logging_steps=1,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    seed=0,
)
trainer = (MeanLossTrainer if args.own_loss else Trainer)(model=model, args=arguments, train_dataset=list(samples()))
trainer.train()
