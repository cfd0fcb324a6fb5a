"""A T5 on passages of any length, an empty_cache() after every batch."""

import argparse
import os
import random

import torch
from transformers import T5Config, T5ForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

if args.fixed:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # read when CUDA starts

random.seed(5)
config = T5Config(
    vocab_size=8192,
    d_model=512,
    d_kv=64,
    d_ff=2048,
    num_layers=2,
    num_heads=8,
    use_cache=False,
    pad_token_id=0,
    decoder_start_token_id=0,
)
model = T5ForConditionalGeneration(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

for step in range(10):
    source, target = random.randint(100, 900), random.randint(50, 400)
    input_ids = torch.randint(config.vocab_size, (8, source)).cuda()
    labels = torch.randint(config.vocab_size, (8, target)).cuda()
    loss = model(input_ids=input_ids, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()
    print(f"step {step}: {source} to {target} tokens, loss {loss.item():.4f}")
