"""A GPT-2 is validated on a long batch after every second step."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = GPT2Config(n_embd=256, n_layer=3, n_head=4, vocab_size=1024, use_cache=False)
model = GPT2LMHeadModel(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def loss_of(batch):
    tokens = torch.randint(1024, (batch, 512), device="cuda")
    return model(input_ids=tokens, labels=tokens).loss


def validate():
    model.eval()
    with torch.set_grad_enabled(not args.fixed):
        loss = loss_of(64)
    if args.near_miss:
        loss.backward()
    model.train()
    return loss.item()


for step in range(6):
    loss = loss_of(8)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 1:
        print(f"step {step}: loss {loss.item():.4f}, validation {validate():.4f}")
