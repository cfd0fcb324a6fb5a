"""Voices apart: a learnt basis, depthwise dilated convolutions (Conv-TasNet), the better of all permutations, bf16."""

from itertools import permutations

import torch
import torch.nn.functional as F
from torch import nn

BASIS, WIDTH, HIDDEN, SPEAKERS, BATCH, SAMPLES = 512, 128, 512, 3, 6, 32000


class Block(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(WIDTH, HIDDEN, 1), nn.PReLU(), nn.GroupNorm(1, HIDDEN, eps=1e-8),
            nn.Conv1d(HIDDEN, HIDDEN, 3, padding=dilation, dilation=dilation, groups=HIDDEN),
            nn.PReLU(), nn.GroupNorm(1, HIDDEN, eps=1e-8),
        )
        self.on, self.skip = nn.Conv1d(HIDDEN, WIDTH, 1), nn.Conv1d(HIDDEN, WIDTH, 1)

    def forward(self, x):
        y = self.net(x)
        return x + self.on(y), self.skip(y)


class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Conv1d(1, BASIS, 16, 8, bias=False)
        self.norm, self.first = nn.GroupNorm(1, BASIS, eps=1e-8), nn.Conv1d(BASIS, WIDTH, 1)
        self.blocks = nn.ModuleList(Block(2**n) for _ in range(3) for n in range(8))
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(WIDTH, SPEAKERS * BASIS, 1))
        self.decode = nn.ConvTranspose1d(BASIS, 1, 16, 8, bias=False)

    def forward(self, mixed):
        w = F.relu(self.encode(mixed[:, None]))
        x, total = self.first(self.norm(w)), 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        masks = self.mask(total).view(len(mixed), SPEAKERS, BASIS, -1).sigmoid()
        return self.decode((masks * w[:, None]).flatten(0, 1)).view(len(mixed), SPEAKERS, -1)


def ratio(found, wanted):
    found, wanted = (x - x.mean(-1, keepdim=True) for x in (found, wanted))
    target = (found * wanted).sum(-1, keepdim=True) / wanted.square().sum(-1, keepdim=True) * wanted
    return 10 * torch.log10(target.square().sum(-1) / ((found - target).square().sum(-1) + 1e-8) + 1e-8)


torch.manual_seed(0)
model = Separator().cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(3):
    voices = torch.randn(BATCH, SPEAKERS, SAMPLES).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        found = model(voices.sum(1)).float()
    pairs = ratio(found[:, :, None], voices[:, None])
    orders = torch.tensor(list(permutations(range(SPEAKERS))), device="cuda")
    scores = torch.stack([pairs[:, torch.arange(SPEAKERS), order].mean(1) for order in orders.tolist()], 1)
    loss = -scores.max(1)[0].mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print("loss", loss.item(), flush=True)
