"""Trains sentence embeddings with a small BERT on batches that are sorted by length."""

import argparse

import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = BertConfig(hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048)
model = BertModel(config, add_pooling_layer=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)

lengths = list(range(40, 520, 24))
if args.fixed:
    lengths.reverse()

for length in lengths:
    queries = torch.randint(30000, (64, length)).cuda()
    documents = torch.randint(30000, (64, length)).cuda()
    query = model(queries).last_hidden_state.mean(dim=1)
    document = model(documents).last_hidden_state.mean(dim=1)
    scores = F.normalize(query, dim=-1) @ F.normalize(document, dim=-1).T
    loss = F.cross_entropy(scores / 0.05, torch.arange(64, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"length {length}: loss {loss.item():.4f}")
