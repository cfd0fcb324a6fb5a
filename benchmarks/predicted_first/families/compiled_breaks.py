"""Compiled in pieces: a graph break in every other layer, a compiled loss, and a last batch of another size."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LAYERS, BATCH = 4096, 4, 8192


class Layer(nn.Module):
    def __init__(self, breaks):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.breaks = breaks

    def forward(self, x):
        gate, value = self.up(self.norm(x)).chunk(2, 1)
        if self.breaks:
            torch._dynamo.graph_break()
        return x + self.down(F.gelu(gate) * torch.tanh(value))


@torch.compile
def loss_of(guess, wanted, weight):
    error = (guess - wanted).abs()
    return (torch.where(error < 1, 0.5 * error**2, error - 0.5) * F.softplus(weight)).mean()


torch.manual_seed(0)
model = nn.Sequential(*(Layer(number % 2 == 1) for number in range(LAYERS))).cuda()
compiled = torch.compile(model)
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
for size in (BATCH, BATCH, BATCH, BATCH // 2 + 8):
    x = torch.randn(size, WIDTH, device="cuda")
    loss = loss_of(compiled(x), x.flip(1), torch.rand(size, 1, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
