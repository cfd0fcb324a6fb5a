"""Experts with a capacity: two of sixteen for each token, dispatched by one-hot products, an auxiliary loss for balance."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, EXPERTS, LAYERS, LENGTH, BATCH = 768, 16, 8, 512, 16


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.route = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, 4 * WIDTH) * 0.02)
        self.down = nn.Parameter(torch.randn(EXPERTS, 4 * WIDTH, WIDTH) * 0.02)

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        room = 2 * len(tokens) // EXPERTS
        chances = self.route(tokens).float().softmax(-1)
        weights, chosen = chances.topk(2, -1)
        taken = F.one_hot(chosen, EXPERTS).flatten(0, 1)
        place = (taken.cumsum(0) * taken).sum(-1).view(-1, 2) - 1
        kept = place < room
        slot = torch.where(kept, chosen * room + place, EXPERTS * room)
        boxes = tokens.new_zeros(EXPERTS * room + 1, WIDTH)
        boxes = boxes.index_add(0, slot.flatten(), tokens.repeat_interleave(2, 0))[:-1].view(EXPERTS, room, WIDTH)
        made = torch.bmm(F.silu(torch.bmm(boxes, self.up)), self.down).view(-1, WIDTH)
        back = torch.cat([made, made.new_zeros(1, WIDTH)])[slot]
        balance = EXPERTS * (chances.mean(0) * F.one_hot(chosen[:, 0], EXPERTS).float().mean(0)).sum()
        return (back * weights[..., None].to(back.dtype)).sum(1).view_as(x), balance


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend, self.first, self.second = nn.MultiheadAttention(WIDTH, 12, batch_first=True), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.experts = Experts()

    def forward(self, x, mask):
        y = self.first(x)
        x = x + self.attend(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        made, balance = self.experts(self.second(x))
        return x + made, balance


torch.manual_seed(0)
embed, head = nn.Embedding(32000, WIDTH).cuda(), nn.Linear(WIDTH, 32000, bias=False).cuda()
blocks = nn.ModuleList(Block() for _ in range(LAYERS)).cuda()
model = nn.ModuleList([embed, blocks, head])
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=False)
mask = nn.Transformer.generate_square_subsequent_mask(LENGTH, device="cuda")

for _ in range(3):
    ids = torch.randint(0, 32000, (BATCH, LENGTH + 1)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        x, balance = embed(ids[:, :-1]), 0
        for block in blocks:
            x, part = block(x, mask)
            balance = balance + part
        loss = F.cross_entropy(head(x).flatten(0, 1).float(), ids[:, 1:].flatten()) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
