"""Trains a small BART to write headlines, padded to the model's longest output."""

import argparse

import torch
from transformers import BartConfig, BartForConditionalGeneration

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = BartConfig(
    vocab_size=50265,
    d_model=256,
    encoder_layers=2,
    decoder_layers=2,
    encoder_ffn_dim=1024,
    decoder_ffn_dim=1024,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    use_cache=False,
)
model = BartForConditionalGeneration(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
max_target_length = 64 if args.fixed else 1024

for step in range(5):
    input_ids = torch.randint(4, config.vocab_size, (8, 256)).cuda()
    labels = torch.full((8, max_target_length), -100)
    labels[:, :48] = torch.randint(4, config.vocab_size, (8, 48))
    loss = model(input_ids=input_ids, labels=labels.cuda()).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
