"""An LSTM language model, and the average of its weights."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class LanguageModel(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.embed = nn.Embedding(10000, width)
        self.rnn = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 10000)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


model = LanguageModel().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
average = None if args.near_miss else AveragedModel(model, device="cpu" if args.fixed else None)

for step in range(4):
    tokens = torch.randint(10000, (4, 33), device="cuda")
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if average is not None:
        average.update_parameters(model)
    print(f"step {step}: loss {loss.item():.4f}")
