"""Trains a GPT-Neo and resumes from its own checkpoint."""

import argparse

import torch
from transformers import GPTNeoConfig, GPTNeoForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = GPTNeoConfig(
    vocab_size=16384,
    hidden_size=1536,
    num_layers=6,
    attention_types=[[["global", "local"], 3]],
    num_heads=16,
    use_cache=False,
)


def build():
    model = GPTNeoForCausalLM(config).cuda()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)


def train(model, optimizer, num_steps):
    for step in range(num_steps):
        tokens = torch.randint(config.vocab_size, (1, 256)).cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.4f}")


model, optimizer = build()
train(model, optimizer, 2)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
del model, optimizer

model, optimizer = build()
checkpoint = torch.load("checkpoint.pt", map_location="cpu" if args.fixed else None)
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
train(model, optimizer, 4)
