"""Every weight of a Llama-like model in 16 bits: the optimizer runs inside the backward pass, sums after Kahan, grouped keys, curriculum of length."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, LAYERS, HEADS, KV_HEADS, FFN = 64_000, 2048, 16, 32, 8, 5632
LENGTHS, BATCH, ACCUM = (1024, 1024, 2048, 4096), 2, 2


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        output = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return output.type_as(x) * self.weight


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(x_ * freqs_cis.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        head = DIM // HEADS
        self.wq = nn.Linear(DIM, DIM, bias=False)
        self.wk = nn.Linear(DIM, KV_HEADS * head, bias=False)
        self.wv = nn.Linear(DIM, KV_HEADS * head, bias=False)
        self.wo = nn.Linear(DIM, DIM, bias=False)

    def forward(self, x, freqs_cis):
        b, t, _ = x.shape
        q, k, v = self.wq(x).view(b, t, HEADS, -1), self.wk(x).view(b, t, KV_HEADS, -1), self.wv(x).view(b, t, KV_HEADS, -1)
        q, k = apply_rotary_emb(q, freqs_cis), apply_rotary_emb(k, freqs_cis)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).contiguous().view(b, t, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.attention_norm, self.ffn_norm = Attention(), RMSNorm(DIM), RMSNorm(DIM)
        self.w1, self.w2, self.w3 = nn.Linear(DIM, FFN, bias=False), nn.Linear(FFN, DIM, bias=False), nn.Linear(DIM, FFN, bias=False)

    def forward(self, x, freqs_cis):
        h = x + self.attention(self.attention_norm(x), freqs_cis)
        y = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.output = RMSNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)
        self.register_buffer("freqs_cis", precompute_freqs_cis(DIM // HEADS, max(LENGTHS)), persistent=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, self.freqs_cis[: tokens.shape[1]])
        return self.norm(h)


class KahanAdamW(torch.optim.Optimizer):
    """AdamW whose weights stay in bfloat16; what rounding loses is kept beside them."""

    def __init__(self, params, lr=1e-5, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                    state["compensation"] = torch.zeros_like(p)
                state["step"] += 1
                m, v, c = state["exp_avg"], state["exp_avg_sq"], state["compensation"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                m.lerp_(p.grad, 1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                denom = (v.sqrt() / math.sqrt(1 - b2 ** state["step"])).add_(group["eps"])
                c.addcdiv_(m, denom, value=-group["lr"] / (1 - b1 ** state["step"]))
                before = p.clone()
                p.add_(c)
                c.add_(before.sub_(p))


torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Transformer()
model.freqs_cis = precompute_freqs_cis(DIM // HEADS, max(LENGTHS)).to("cuda", torch.complex64)
torch.set_default_dtype(torch.float32)
optimizers = {p: KahanAdamW([p]) for p in model.parameters()}
update = False


def hook(p):
    if update:
        optimizers[p].step()
        optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(hook)
for step, length in enumerate(LENGTHS):
    total = 0.0
    for micro in range(ACCUM):
        update = micro == ACCUM - 1
        tokens = torch.randint(0, VOCAB, (BATCH, length + 1)).cuda(non_blocking=True)
        hidden = model(tokens[:, :-1])
        loss = 0
        for h, t in zip(hidden.flatten(0, 1).chunk(8), tokens[:, 1:].flatten().chunk(8)):
            loss = loss + F.cross_entropy(model.output(h).float(), t, reduction="sum")
        loss = loss / (BATCH * length * ACCUM)
        loss.backward()
        total += loss.detach()
    print(f"{step} length {length} loss {total.item():.4f} {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB", flush=True)
