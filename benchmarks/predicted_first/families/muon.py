"""A decoder with rotary positions and squared ReLU, trained by orthogonal updates of its matrices (Newton-Schulz in bf16)."""

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 50304, 1024, 8, 16, 1024, 8


def rotate(x):
    length, size = x.shape[-2:]
    angles = torch.outer(torch.arange(length, device=x.device), 1e4 ** (-torch.arange(0, size, 2, device=x.device) / size))
    first, second = x.float().chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1).type_as(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (WIDTH,))).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(F.rms_norm(q, (q.shape[-1],))), rotate(F.rms_norm(k, (k.shape[-1],)))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(F.relu(self.up(F.rms_norm(x, (WIDTH,)))).square())


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, labels):
        x = F.rms_norm(self.embed(ids), (WIDTH,))
        for block in self.blocks:
            x = block(x)
        logits = 30 * torch.tanh(self.head(F.rms_norm(x, (WIDTH,))).float() / 30)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def orthogonal(update, steps=5):
    x = update.bfloat16() / (update.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        product = x @ x.T
        x = 3.4445 * x + (-4.7750 * product + 2.0315 * product @ product) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p].setdefault("momentum", torch.zeros_like(p))
                kept.lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(kept, group["momentum"]))
                p.add_(update.type_as(p), alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


torch.manual_seed(0)
model = Decoder().cuda()
others = torch.optim.AdamW([*model.embed.parameters(), *model.head.parameters()], 3e-4, fused=True)
matrices = Muon(model.blocks.parameters())

for _ in range(3):
    ids = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1)).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        loss = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    others.step()
    matrices.step()
    model.zero_grad(set_to_none=True)
    print("loss", loss.item(), flush=True)
