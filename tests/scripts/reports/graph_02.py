"""A character LSTM over long documents, read in chunks."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()

CHARACTERS, BATCH, CHUNK, NUM_CHUNKS = 256, 64, 128, 12


class CharRNN(nn.Module):
    def __init__(self, hidden_size=512):
        super().__init__()
        self.embed = nn.Embedding(CHARACTERS, hidden_size)
        self.rnn = nn.LSTM(hidden_size, hidden_size, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden_size, CHARACTERS)

    def forward(self, characters, hidden):
        output, hidden = self.rnn(self.embed(characters), hidden)
        return self.head(output), hidden


model = CharRNN().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for document in range(5):
    text = torch.randint(CHARACTERS, (BATCH, NUM_CHUNKS * CHUNK + 1)).cuda()
    hidden = None
    optimizer.zero_grad()
    for start in range(0, NUM_CHUNKS * CHUNK, CHUNK):
        chunk = text[:, start : start + CHUNK]
        target = text[:, start + 1 : start + CHUNK + 1]
        if args.fixed and hidden is not None:
            hidden = tuple(state.detach() for state in hidden)
        logits, hidden = model(chunk, hidden)
        loss = criterion(logits.flatten(0, 1), target.flatten())
        loss.backward(retain_graph=not args.fixed)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"document {document}: loss {loss.item():.4f}")
