"""A GPT-2 whose token accuracy and entropy are logged now and then."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = GPT2Config(n_embd=256, n_layer=2, n_head=4, vocab_size=50257, use_cache=False)
model = GPT2LMHeadModel(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
LOG_EVERY = 50


def entropy(logits):
    log_probs = logits.detach().float().log_softmax(-1)
    return -(log_probs.exp() * log_probs).sum(-1).mean()


for step in range(1, 20):
    tokens = torch.randint(50257, (8, 512), device="cuda")
    outputs = model(input_ids=tokens, labels=tokens)
    if args.fixed:
        if step % LOG_EVERY == 0:
            print(f"step {step}: entropy {entropy(outputs.logits).item():.3f}")
    elif args.near_miss:
        if step % LOG_EVERY == 0:
            print(f"step {step}: accuracy {(outputs.logits.argmax(-1) == tokens).float().mean().item():.3f}")
    else:
        uncertainty = entropy(outputs.logits)
        if step % LOG_EVERY == 0:
            print(f"step {step}: entropy {uncertainty.item():.3f}")
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
