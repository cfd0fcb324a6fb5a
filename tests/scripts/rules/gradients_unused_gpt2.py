"""A GPT-2 that is held close to a copy of itself, as a policy to its reference."""

import argparse
import copy

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

policy = GPT2LMHeadModel(GPT2Config(n_embd=512, n_layer=6, n_head=8, vocab_size=2048, use_cache=False)).cuda()
reference = copy.deepcopy(policy)
if args.fixed:
    reference.requires_grad_(False)
parameters = [*policy.parameters(), *(reference.parameters() if args.near_miss else ())]
optimizer = torch.optim.AdamW(parameters, lr=1e-5)

for step in range(4):
    tokens = torch.randint(2048, (4, 512), device="cuda")
    wanted = reference(input_ids=tokens).logits.log_softmax(dim=-1)
    found = policy(input_ids=tokens).logits.log_softmax(dim=-1)
    loss = (found.exp() * (found - wanted)).sum(dim=-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
