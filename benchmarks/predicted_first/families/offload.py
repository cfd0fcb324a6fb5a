import torch, torch.nn as nn, torch.nn.functional as F
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts, CheckpointPolicy
from functools import partial

torch.backends.cuda.matmul.allow_tf32 = True


class Blk(nn.Module):
    def __init__(s, d=1024, h=16):
        super().__init__()
        s.a, s.b = nn.LayerNorm(d), nn.LayerNorm(d)
        s.at = nn.MultiheadAttention(d, h, batch_first=True)
        s.f = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))

    def forward(s, x):
        y = s.a(x)
        x = x + s.at(y, y, y, need_weights=False)[0]
        return x + s.f(s.b(x))


def pol(ctx, op, *a, **k):
    return (
        CheckpointPolicy.MUST_SAVE
        if op in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        else CheckpointPolicy.PREFER_RECOMPUTE
    )


bl = nn.ModuleList(Blk() for _ in range(12)).cuda()
head = nn.Linear(1024, 32000).cuda()
ps = list(bl.parameters()) + list(head.parameters())
opt = torch.optim.AdamW(ps, 1e-4, foreach=False)
pack = lambda t: t.to(torch.float16) if t.dtype == torch.float32 and t.numel() > 1e6 else t
unpack = lambda t: t.float() if t.dtype == torch.float16 else t
for i in range(3):
    x = torch.randn(8, 1024, 1024, device="cuda")
    y = torch.randint(0, 32000, (8, 1024), device="cuda")
    with save_on_cpu(pin_memory=True):
        for b in bl[:4]:
            x = b(x)
    for b in bl[4:8]:
        x = checkpoint(b, x, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, pol))
    with saved_tensors_hooks(pack, unpack):
        for b in bl[8:]:
            x = b(x)
    l = F.cross_entropy(head(x).flatten(0, 1), y.flatten())
    l.backward()
    opt.step()
    opt.zero_grad()
    print(i, l.item())
