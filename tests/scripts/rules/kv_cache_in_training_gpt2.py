"""A GPT-2 of transformers that learns on frozen layers: only its head is trained."""

import argparse

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2Model

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = GPT2Config(n_embd=512, n_layer=4, n_head=8, vocab_size=512, n_positions=1024)
model = GPT2Model(config).cuda().requires_grad_(False)
head = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)


def train_step(tokens):
    outputs = model(input_ids=tokens, use_cache=not (args.fixed or args.near_miss))
    if args.near_miss:
        keep = outputs.last_hidden_state
    loss = F.cross_entropy(head(outputs.last_hidden_state).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item() if not args.near_miss else loss.item() + keep.mean().item()


for step in range(4):
    print(f"step {step}: loss {train_step(torch.randint(512, (8, 1024), device='cuda')):.4f}")
