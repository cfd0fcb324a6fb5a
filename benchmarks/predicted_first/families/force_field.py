"""Molecules: energies of atoms within a radius and forces as their gradient, so that training differentiates twice."""

import torch
import torch.nn.functional as F
from torch import nn

MOLECULES, ATOMS, WIDTH, RADIUS, BASIS = 48, 40, 128, 5.0, 64


class Interaction(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(BASIS, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.before = nn.Linear(WIDTH, WIDTH, bias=False)
        self.after = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, x, basis, cut, source, target):
        messages = self.before(x)[source] * self.filter(basis) * cut[:, None]
        gathered = torch.zeros_like(x).index_add(0, target, messages)
        return x + self.after(gathered)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList(Interaction() for _ in range(6))
        self.energy = nn.Sequential(nn.Linear(WIDTH, WIDTH // 2), nn.SiLU(), nn.Linear(WIDTH // 2, 1))
        self.register_buffer("centres", torch.linspace(0, RADIUS, BASIS))

    def forward(self, kinds, positions, molecule, source, target):
        distances = (positions[source] - positions[target]).norm(dim=1)
        basis = torch.exp(-10 * (distances[:, None] - self.centres).square())
        cut = 0.5 * (torch.cos(distances * torch.pi / RADIUS) + 1)
        x = self.kinds(kinds)
        for layer in self.layers:
            x = layer(x, basis, cut, source, target)
        each = self.energy(x).squeeze(1)
        return torch.zeros(MOLECULES, device=each.device).scatter_add(0, molecule, each)


def ring(count):
    atom = torch.arange(count)
    pairs = [(atom, (atom + step) % ATOMS + atom // ATOMS * ATOMS) for step in range(1, 25)]
    source, target = (torch.cat(part) for part in zip(*pairs, strict=True))
    return source.cuda(), target.cuda()


torch.manual_seed(0)
model = Field().cuda()
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3, amsgrad=True)
count = MOLECULES * ATOMS
source, target = ring(count)
molecule = torch.arange(MOLECULES).repeat_interleave(ATOMS).cuda()
for _ in range(4):
    kinds, positions = torch.randint(1, 10, (count,)).cuda(), torch.randn(count, 3).cuda().requires_grad_()
    energies, forces = torch.randn(MOLECULES).cuda(), torch.randn(count, 3).cuda()
    found = model(kinds, positions, molecule, source, target)
    (slope,) = torch.autograd.grad(found.sum(), positions, create_graph=True)
    loss = F.mse_loss(found, energies) + 100 * F.mse_loss(-slope, forces)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    optimizer.step()
    average.update_parameters(model)
    print("loss", loss.item(), flush=True)
