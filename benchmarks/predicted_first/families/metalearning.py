"""Learning to learn: inner steps of gradient descent on each task, differentiated through by the outer one."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

TASKS, WAYS, SHOTS, INNER = 4, 5, 15, 5


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b, track_running_stats=False), nn.ReLU(), nn.MaxPool2d(2))


torch.manual_seed(0)
model = nn.Sequential(block(3, 64), block(64, 64), block(64, 64), block(64, 64), nn.Flatten(), nn.Linear(1600, WAYS)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)

for _ in range(3):
    optimizer.zero_grad()
    for _ in range(TASKS):
        seen, asked = (torch.randn(WAYS * SHOTS, 3, 84, 84).cuda() for _ in range(2))
        labels = torch.arange(WAYS).repeat_interleave(SHOTS).cuda()
        fast = dict(model.named_parameters())
        for _ in range(INNER):
            inner = F.cross_entropy(functional_call(model, fast, (seen,)), labels)
            gradients = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: p - 0.01 * g for (name, p), g in zip(fast.items(), gradients, strict=True)}
        loss = F.cross_entropy(functional_call(model, fast, (asked,)), labels) / TASKS
        loss.backward()
    optimizer.step()
    print("loss", loss.item(), flush=True)
