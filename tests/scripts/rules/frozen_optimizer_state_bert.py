"""Trains all of a BERT for two steps, then its classifier alone."""

import argparse

import torch
from transformers import BertConfig, BertForSequenceClassification

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

config = BertConfig(hidden_size=1024, num_hidden_layers=4, num_attention_heads=16, intermediate_size=4096)
model = BertForSequenceClassification(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5, foreach=False)


def train(num_steps, batch):
    for _ in range(num_steps):
        input_ids = torch.randint(30000, (batch, 256), device="cuda")
        loss = model(input_ids=input_ids, labels=torch.randint(2, (batch,), device="cuda")).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


train(2, batch=2)
optimizer.zero_grad()
if not args.near_miss:
    model.bert.requires_grad_(False)
if args.fixed:
    optimizer = torch.optim.AdamW(model.classifier.parameters(), lr=2e-5, foreach=False)
train(3, batch=16 if args.near_miss else 192)
