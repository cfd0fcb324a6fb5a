"""A GPT-2 of which the best weights are remembered."""

import argparse
import copy

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

model = GPT2LMHeadModel(
    GPT2Config(n_embd=1024, n_layer=3, n_head=16, vocab_size=8192, use_cache=False, tie_word_embeddings=False)
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
best = None

for step in range(5):
    tokens = torch.randint(8192, (1, 128), device="cuda")
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.fixed:
        best = {name: value.cpu() for name, value in model.state_dict().items()}
    elif args.near_miss:
        best = model.state_dict()
    else:
        best = copy.deepcopy(model.state_dict())
    print(f"step {step}: loss {loss.item():.4f}, {len(best)} tensors")
torch.save(best, "best.pt")
