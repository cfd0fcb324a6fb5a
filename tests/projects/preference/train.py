"""Tunes a llama with LoRA: `python train.py dpo` on pairs of answers, `python train.py sft` on packed documents."""

import argparse

from dpo_trainer import DPOTrainer
from models import make_policy
from transformers import Trainer, TrainingArguments

from data import Packed, PairCollator, Pairs


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=["dpo", "sft"])
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--hidden-size", type=int, default=512)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--no-checkpointing", action="store_true")
    return parser.parse_args()


def main():
    args = parse_args()
    model = make_policy(args)
    training = TrainingArguments(
        output_dir=f"{args.method}-llama",
        per_device_train_batch_size=args.batch_size,
        per_device_eval_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accumulate,
        gradient_checkpointing=not args.no_checkpointing,
        gradient_checkpointing_kwargs={"use_reentrant": False},
        learning_rate=5e-5,
        lr_scheduler_type="cosine",
        warmup_steps=2,
        max_steps=20,
        eval_strategy="steps",
        eval_steps=2,
        save_steps=2,
        logging_steps=1,
        bf16=True,
        remove_unused_columns=False,
        report_to=[],
    )
    pairs = Pairs(64, args.vocab_size, args.max_length)
    if args.method == "dpo":
        trainer = DPOTrainer(
            model, training, train_dataset=pairs, eval_dataset=Pairs(8, args.vocab_size, args.max_length, seed=1),
            data_collator=PairCollator(pad_token_id=0),
        )  # fmt: skip
    else:
        packed = Packed([row["prompt"] + row["chosen"] for row in pairs], args.max_length, eos_token_id=2)
        trainer = Trainer(model, training, train_dataset=packed, eval_dataset=packed)
    trainer.train()
    trainer.save_model()


if __name__ == "__main__":
    main()
