"""A state-space model whose scan is a loop in Python over time, checkpointed by block; conv1d, gates, float32 states."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, INNER, STATE, RANK, LENGTH, BATCH = 384, 768, 16, 24, 192, 8


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 2 * INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)
        self.conv = nn.Conv1d(INNER, INNER, 4, groups=INNER, padding=3)
        self.select, self.step = nn.Linear(INNER, RANK + 2 * STATE, bias=False), nn.Linear(RANK, INNER)
        self.log_a = nn.Parameter(torch.arange(1, STATE + 1).float().log().expand(INNER, -1).clone())
        self.skip = nn.Parameter(torch.ones(INNER))

    def forward(self, x):
        inner, gate = self.into(self.norm(x)).chunk(2, -1)
        inner = F.silu(self.conv(inner.transpose(1, 2))[..., :LENGTH].transpose(1, 2))
        rank, b, c = self.select(inner).split([RANK, STATE, STATE], -1)
        step = F.softplus(self.step(rank)).float()
        decay = torch.exp(step[..., None] * -self.log_a.exp())
        enters = step[..., None] * b[:, :, None] * inner[..., None]
        state, made = torch.zeros(len(x), INNER, STATE, device=x.device), []
        for time in range(LENGTH):
            state = decay[:, time] * state + enters[:, time]
            made.append(torch.einsum("bds,bs->bd", state, c[:, time].float()))
        y = torch.stack(made, 1).type_as(x) + self.skip * inner
        return x + self.out(y * F.silu(gate))


torch.manual_seed(0)
embed, head = nn.Embedding(8000, WIDTH).cuda(), nn.Linear(WIDTH, 8000, bias=False).cuda()
blocks = nn.ModuleList(Mixer() for _ in range(6)).cuda()
head.weight = embed.weight
optimizer = torch.optim.AdamW([*embed.parameters(), *blocks.parameters()], 1e-3)

for _ in range(3):
    ids = torch.randint(0, 8000, (BATCH, LENGTH + 1)).cuda()
    x = embed(ids[:, :-1])
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    loss = F.cross_entropy(head(x).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
