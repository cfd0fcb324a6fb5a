"""Scores words in context: a vocabulary of 563354 embeddings and a small GRU, trained with Adam."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Scorer(nn.Module):
    def __init__(self, vocabulary=563354, width=256):
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.score = nn.Linear(width, 1)

    def forward(self, words):
        output, _ = self.rnn(self.embeddings(words))
        return self.score(output).squeeze(-1)


model = Scorer().cuda()
if args.fixed:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)

for step in range(5):
    words = torch.randint(563354, (64, 32)).cuda()
    target = torch.randint(2, (64, 32)).float().cuda()
    loss = F.binary_cross_entropy_with_logits(model(words), target)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.4f}")
