"""Translation with LSTMs over batches of very different lengths: a batch that the card cannot hold is skipped."""

import torch
import torch.nn.functional as F
from torch import nn

WORDS = 12000
LENGTHS = [40, 90, 260, 60, 420, 120, 330, 80]


class Translator(nn.Module):
    def __init__(self, width=640):
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, width), nn.Embedding(WORDS, width)
        self.encoder = nn.LSTM(width, width, 2, batch_first=True, dropout=0.2)
        self.decoder = nn.LSTM(width, width, 2, batch_first=True, dropout=0.2)
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.out = nn.Linear(2 * width, WORDS)

    def forward(self, source, target):
        memory, state = self.encoder(self.source(source))
        hidden, _ = self.decoder(self.target(target), state)
        context, _ = self.attention(hidden, memory, memory, need_weights=False)
        return self.out(torch.cat([hidden, context], -1))


torch.manual_seed(0)
model = Translator().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
skipped = 0
for epoch in range(2):
    for length in LENGTHS:
        source, target = torch.randint(0, WORDS, (2, 48, length)).cuda()
        try:
            logits = model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
            loss.backward()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            skipped += 1
            print(f"epoch {epoch}: {length} words skipped", flush=True)
            logits = loss = None
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            continue
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"epoch {epoch}: {length} words, loss {loss.item():.3f}", flush=True)
print(f"{skipped} batches skipped")
