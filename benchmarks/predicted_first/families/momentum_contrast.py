"""Contrast with a queue: a slowly following copy of the encoder, keys of earlier batches, LARS written by hand, bf16."""

import copy

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Lars(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9, decay=1e-6):
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                change = p.grad
                if p.ndim > 1:
                    change = change.add(p, alpha=group["decay"])
                    size, step = p.norm(), change.norm()
                    change = change * torch.where(size > 0, torch.where(step > 0, 0.001 * size / step, 1.0), 1.0)
                kept = self.state[p].setdefault("momentum", torch.zeros_like(p))
                kept.mul_(group["momentum"]).add_(change)
                p.add_(kept, alpha=-group["lr"])


torch.manual_seed(0)
encoder = torchvision.models.resnet50(weights=None, num_classes=128)
encoder.fc = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), encoder.fc)
encoder = encoder.cuda()
follower = copy.deepcopy(encoder).requires_grad_(False)
queue = F.normalize(torch.randn(128, 65536, device="cuda"), dim=0)
optimizer, place, BATCH = Lars(encoder.parameters(), 0.3), 0, 128

for _ in range(4):
    first, second = torch.randn(BATCH, 3, 224, 224).cuda(), torch.randn(BATCH, 3, 224, 224).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        queries = F.normalize(encoder(first), dim=1)
        with torch.no_grad():
            for slow, fast in zip(follower.parameters(), encoder.parameters(), strict=True):
                slow.mul_(0.999).add_(fast, alpha=0.001)
            keys = F.normalize(follower(second[torch.randperm(BATCH, device="cuda")]), dim=1)
        positive = (queries * keys).sum(1, keepdim=True)
        logits = torch.cat([positive, queries @ queue.clone().detach()], 1) / 0.07
        loss = F.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue[:, place : place + BATCH] = keys.T
    place = (place + BATCH) % queue.shape[1]
    print("loss", loss.item(), flush=True)
