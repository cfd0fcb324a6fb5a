"""Reversible blocks (Reformer): activations computed back from outputs by a Function of one's own, random states kept, logits in chunks."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd.function import Function

VOCAB, DIM, HEADS, DEPTH, SEQ, BATCH = 32000, 1024, 16, 12, 4096, 4


class Deterministic(nn.Module):
    """Runs a net again with the random numbers it had."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.cpu_state = self.gpu_state = None

    def forward(self, x, record=False, replay=False):
        if record:
            self.cpu_state, self.gpu_state = torch.get_rng_state(), torch.cuda.get_rng_state()
        if not replay:
            return self.net(x)
        with torch.random.fork_rng(devices=[torch.cuda.current_device()], enabled=True):
            torch.set_rng_state(self.cpu_state)
            torch.cuda.set_rng_state(self.gpu_state)
            return self.net(x)


class ReversibleBlock(nn.Module):
    def __init__(self, f, g):
        super().__init__()
        self.f, self.g = Deterministic(f), Deterministic(g)

    def forward(self, x):
        x1, x2 = torch.chunk(x, 2, dim=2)
        with torch.no_grad():
            y1 = x1 + self.f(x2, record=self.training)
            y2 = x2 + self.g(y1, record=self.training)
        return torch.cat([y1, y2], dim=2)

    def backward_pass(self, y, dy):
        y1, y2 = torch.chunk(y, 2, dim=2)
        dy1, dy2 = torch.chunk(dy, 2, dim=2)
        del y, dy
        with torch.enable_grad():
            y1.requires_grad = True
            gy1 = self.g(y1, replay=True)
            torch.autograd.backward(gy1, dy2)
        with torch.no_grad():
            x2 = y2 - gy1
            del y2, gy1
            dx1 = dy1 + y1.grad
            del dy1
            y1.grad = None
        with torch.enable_grad():
            x2.requires_grad = True
            fx2 = self.f(x2, replay=True)
            torch.autograd.backward(fx2, dx1)
        with torch.no_grad():
            x1 = y1 - fx2
            del y1, fx2
            dx2 = dy2 + x2.grad
            del dy2
            x2.grad = None
            return torch.cat([x1, x2.detach()], dim=2), torch.cat([dx1, dx2], dim=2)


class _ReversibleFunction(Function):
    @staticmethod
    def forward(ctx, x, blocks):
        for block in blocks:
            x = block(x)
        ctx.y = x.detach()
        ctx.blocks = blocks
        return x

    @staticmethod
    def backward(ctx, dy):
        y = ctx.y
        del ctx.y
        for block in ctx.blocks[::-1]:
            y, dy = block.backward_pass(y, dy)
        return dy, None


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.to_qkv, self.to_out = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.to_qkv(self.norm(x)).chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
        return self.to_out(out.transpose(1, 2).flatten(2))


class ChunkedFeedForward(nn.Module):
    def __init__(self, chunks=4):
        super().__init__()
        self.chunks, self.norm = chunks, nn.LayerNorm(DIM)
        self.net = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        return torch.cat([self.net(self.norm(c)) for c in x.chunk(self.chunks, dim=1)], dim=1)


class Reformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.pos = nn.Embedding(VOCAB, DIM), nn.Embedding(SEQ, DIM)
        self.blocks = nn.ModuleList(ReversibleBlock(Attention(), ChunkedFeedForward()) for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.token(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        x = _ReversibleFunction.apply(torch.cat([x, x], dim=-1), list(self.blocks))
        return self.norm(torch.stack(x.chunk(2, dim=-1)).mean(dim=0))


class ChunkedLoss(Function):
    """Cross entropy of a head whose logits exist for one chunk at a time; gradients are made on the way forward."""

    @staticmethod
    def forward(ctx, hidden, weight, target, chunks):
        dh, dw, total = torch.empty_like(hidden), torch.zeros_like(weight), 0.0
        for h, t, d in zip(hidden.chunk(chunks), target.chunk(chunks), dh.chunk(chunks)):
            logits = (h @ weight.t()).float()
            lse = torch.logsumexp(logits, -1)
            total = total + (lse - logits.gather(1, t[:, None])[:, 0]).sum()
            grad = torch.exp(logits - lse[:, None])
            grad.scatter_add_(1, t[:, None], -torch.ones_like(t[:, None], dtype=grad.dtype))
            grad = grad.div_(len(target)).to(h.dtype)
            d.copy_(grad @ weight)
            dw.addmm_(grad.t(), h)
        ctx.save_for_backward(dh, dw)
        return total / len(target)

    @staticmethod
    def backward(ctx, grad):
        dh, dw = ctx.saved_tensors
        return dh * grad, dw * grad, None, None


torch.manual_seed(0)
model = Reformer().cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
for step in range(4):
    ids = torch.randint(0, VOCAB, (BATCH, SEQ + 1), device="cuda")
    hidden = model(ids[:, :-1])
    loss = ChunkedLoss.apply(hidden.flatten(0, 1), model.head.weight, ids[:, 1:].flatten(), 8)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    optimizer.zero_grad()
    print(f"training loss: {loss.item():.4f}", flush=True)
