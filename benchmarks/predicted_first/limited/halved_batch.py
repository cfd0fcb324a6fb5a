"""A language model that starts with a large batch and halves it as often as the card fails."""

import torch
import torch.nn.functional as F
from torch import nn

LENGTH, WORDS = 512, 16000


class Decoder(nn.Module):
    def __init__(self, width=768, layers=8):
        super().__init__()
        self.tokens = nn.Embedding(WORDS, width)
        layer = nn.TransformerEncoderLayer(width, 12, 4 * width, batch_first=True, norm_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, WORDS)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        return self.head(self.layers(self.tokens(ids), mask=mask, is_causal=True))


def train(model, optimizer, batch_size, steps):
    for _ in range(steps):
        ids = torch.randint(0, WORDS, (batch_size, LENGTH + 1)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"batch of {batch_size}: loss {loss.item():.3f}", flush=True)


torch.manual_seed(0)
model = Decoder().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
batch_size = 96
while batch_size:
    try:
        train(model, optimizer, batch_size, steps=4)
        break
    except torch.cuda.OutOfMemoryError:
        print(f"a batch of {batch_size} is too large", flush=True)
    optimizer.zero_grad(set_to_none=True)
    torch.cuda.empty_cache()
    batch_size //= 2
