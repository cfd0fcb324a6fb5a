"""Reading lines of text: a convolutional body, a bidirectional LSTM over columns, CTC with lines of different length."""

import torch
import torch.nn.functional as F
from torch import nn


class Reader(nn.Module):
    def __init__(self, symbols=96):
        super().__init__()
        widths, layers = (1, 64, 128, 256, 256, 512, 512), []
        for place, (a, b) in enumerate(zip(widths, widths[1:], strict=False)):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
            if place in (0, 1):
                layers.append(nn.MaxPool2d(2))
            if place in (3, 5):
                layers.append(nn.MaxPool2d((2, 1)))
        self.body = nn.Sequential(*layers)
        self.recur = nn.LSTM(512 * 4, 256, num_layers=2, bidirectional=True, dropout=0.2)
        self.out = nn.Linear(512, symbols)

    def forward(self, lines):
        x = self.body(lines).flatten(1, 2).permute(2, 0, 1)
        return self.out(self.recur(x)[0])


torch.manual_seed(0)
model = Reader().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), 1e-4, alpha=0.9, momentum=0.5)

for _ in range(4):
    lines = torch.randn(64, 1, 64, 512).cuda()
    lengths = torch.randint(10, 40, (64,))
    labels = torch.randint(1, 96, (int(lengths.sum()),)).cuda()
    logits = model(lines)
    seen = torch.full((64,), logits.shape[0], dtype=torch.long)
    loss = F.ctc_loss(logits.log_softmax(-1), labels, seen, lengths, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
