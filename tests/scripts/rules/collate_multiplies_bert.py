"""Scores passages for a question with a BERT: the right one and 15 others."""

import argparse

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

PASSAGES = 1 if args.fixed or args.near_miss else 16


def collate(questions):
    pairs = [torch.cat([question, torch.randint(30000, (96,))]) for question in questions for _ in range(PASSAGES)]
    return torch.stack(pairs)


config = BertConfig(hidden_size=256, num_hidden_layers=3, num_attention_heads=4, intermediate_size=1024, num_labels=1)
model = BertForSequenceClassification(config).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
questions = [torch.randint(30000, (32,)) for _ in range(256)]
for pairs in DataLoader(questions, batch_size=128 if args.near_miss else 8, collate_fn=collate):
    scores = model(input_ids=pairs.cuda()).logits.view(-1, PASSAGES)
    loss = F.binary_cross_entropy_with_logits(scores, torch.eye(PASSAGES, device="cuda")[:1].expand_as(scores))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"loss {loss.item():.4f}")
