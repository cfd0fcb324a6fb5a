"""An MLP mixer under `mode="max-autotune-no-cudagraphs"`: products in TF32, kernels chosen by trials on the card."""

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, PLACES, LAYERS, BATCH = 1024, 256, 3, 128


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_one, self.norm_two = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.along = nn.Sequential(nn.Linear(PLACES, 2 * PLACES), nn.GELU(), nn.Linear(2 * PLACES, PLACES))
        self.across = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.along(self.norm_one(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across(self.norm_two(x))


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
model = nn.Sequential(nn.Linear(768, WIDTH), *(Mixer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)).cuda()
head = nn.Linear(WIDTH, 1000).cuda()
mix = torch.compile(model, mode="max-autotune-no-cudagraphs")
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], 1e-3)
for _ in range(4):
    patches = torch.randn(BATCH, PLACES, 768, device="cuda")
    labels = torch.randint(0, 1000, (BATCH,), device="cuda")
    loss = F.cross_entropy(head(mix(patches).mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
