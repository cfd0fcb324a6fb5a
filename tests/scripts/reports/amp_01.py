"""Distils summaries: a large teacher writes them token by token under autocast, a small student learns them."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

VOCABULARY = 8192


class Summarizer(nn.Module):
    def __init__(self, width, num_layers):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.embed(tokens)))


@torch.no_grad()
def generate(model, tokens, num_tokens):
    for _ in range(num_tokens):
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    return tokens


teacher = Summarizer(width=2048, num_layers=12).cuda().train(False)
student = Summarizer(width=256, num_layers=2).cuda()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda")

for step in range(4):
    documents = torch.randint(VOCABULARY, (2, 128)).cuda()
    with torch.autocast("cuda", dtype=torch.float16, cache_enabled=not args.fixed):
        summaries = generate(teacher, documents, num_tokens=6)
        loss = F.cross_entropy(student(summaries[:, :-1]).flatten(0, 1), summaries[:, 1:].flatten())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(f"step {step}: loss {loss.item():.4f}")
