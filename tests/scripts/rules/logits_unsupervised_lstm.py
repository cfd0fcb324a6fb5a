"""An LSTM that answers after a long question; only the answer is scored."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

WORDS, QUESTION, ANSWER = (256 if args.near_miss else 32000), 480, 32


class Model(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.embed = nn.Embedding(WORDS, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, WORDS)

    def forward(self, words):
        states, _ = self.rnn(self.embed(words))
        return self.head(states[:, QUESTION:] if args.fixed else states)


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    words = torch.randint(WORDS, (16, QUESTION + ANSWER), device="cuda")
    labels = words.clone()
    labels[:, :QUESTION] = -100
    logits = model(words)
    loss = F.cross_entropy(logits.flatten(0, 1), labels[:, -logits.shape[1] :].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")
