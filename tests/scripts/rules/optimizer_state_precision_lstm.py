"""An LSTM in bfloat16, with master weights in float32 of which Adam is the optimizer."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--near-miss", action="store_true")
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()


class Tagger(nn.Module):
    def __init__(self, width=2048):
        super().__init__()
        self.embed = nn.Embedding(20000, width)
        self.rnn = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.tag = nn.Linear(width, 17)

    def forward(self, words):
        return self.tag(self.rnn(self.embed(words))[0])


dtype = torch.float32 if args.near_miss else torch.bfloat16
model = Tagger().to("cuda", dtype)
if args.fixed or args.near_miss:
    master = list(model.parameters())
else:
    master = [nn.Parameter(parameter.detach().float()) for parameter in model.parameters()]
optimizer = torch.optim.Adam(master, lr=1e-3, foreach=False)

for step in range(4):
    words = torch.randint(20000, (4, 32), device="cuda")
    loss = F.cross_entropy(model(words).flatten(0, 1), torch.randint(17, (128,), device="cuda"))
    loss.backward()
    if not (args.fixed or args.near_miss):
        for copy, parameter in zip(master, model.parameters(), strict=True):
            copy.grad, parameter.grad = parameter.grad.float(), None
    optimizer.step()
    optimizer.zero_grad()
    if not (args.fixed or args.near_miss):
        with torch.no_grad():
            for copy, parameter in zip(master, model.parameters(), strict=True):
                parameter.copy_(copy)
    print(f"step {step}: loss {loss.item():.4f}")
