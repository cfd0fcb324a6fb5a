"""A BERT on sequences of 1024 tokens."""

import argparse

import torch
from transformers import BertConfig, BertForMaskedLM

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = BertConfig(
    vocab_size=2048,
    hidden_size=256,
    num_hidden_layers=3,
    num_attention_heads=8,
    intermediate_size=1024,
    max_position_embeddings=1024,
)
config._attn_implementation = "sdpa" if args.fixed else "eager"
model = BertForMaskedLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
length = 32 if args.near_miss else 1024

for step in range(4):
    tokens = torch.randint(2048, (8 * 1024 // length, length), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
