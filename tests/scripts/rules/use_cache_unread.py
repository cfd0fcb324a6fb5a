"""Trains a small T5 without its cache of keys and values, as it means to, by `model.config.use_cache = False`.

The decoder reads a copy of that configuration. `--near-miss` is a GPT-2, whose parts share one; `--fixed` passes the
setting in the call.
"""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration


def t5():
    """Four layers on either side."""
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 4, "num_heads": 4}
    config = T5Config(vocab_size=1000, decoder_start_token_id=0, **sizes)
    return T5ForConditionalGeneration(config)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--near-miss", action="store_true")
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    gpt2 = GPT2Config(n_embd=64, n_layer=4, n_head=4, vocab_size=1000)
    model = (GPT2LMHeadModel(gpt2) if args.near_miss else t5()).cuda().train()
    if args.fixed:
        settings = {"use_cache": False}
    else:
        model.config.use_cache = False
        settings = {}
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        ids = torch.randint(0, 1000, (8, 128), device="cuda")
        outputs = model(input_ids=ids, labels=ids, **settings)
        outputs.loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
