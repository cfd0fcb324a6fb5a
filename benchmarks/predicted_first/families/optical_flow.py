"""Motion: torchvision's RAFT, correlations of all pairs and twelve recurrent refinements, a loss over every one of them."""

import torch
from torchvision.models.optical_flow import raft_large

torch.manual_seed(0)
model = raft_large(weights=None).cuda().train()
optimizer = torch.optim.AdamW(model.parameters(), 4e-4, weight_decay=1e-4, eps=1e-8)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-4, total_steps=100)

for _ in range(3):
    first, second = (torch.rand(4, 3, 368, 496).cuda() * 2 - 1 for _ in range(2))
    flow, valid = torch.randn(4, 2, 368, 496).cuda(), torch.rand(4, 368, 496).cuda() > 0.1
    flows = model(first, second, num_flow_updates=12)
    valid = valid & (flow.square().sum(1).sqrt() < 400)
    loss = sum(0.8 ** (11 - n) * ((each - flow).abs() * valid[:, None]).mean() for n, each in enumerate(flows))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    error = (flows[-1] - flow).square().sum(1).sqrt()[valid]
    print("loss", loss.item(), "end point", error.mean().item(), flush=True)
