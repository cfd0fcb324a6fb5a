"""Transformer-XL: a memory of the last segment, relative positions, an adaptive softmax, fp16 by hand with master copies."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, CUTOFFS = 267735, [20000, 40000, 200000]
LAYERS, D, HEADS, INNER, TGT, MEM, BATCH = 12, 512, 8, 2048, 192, 192, 32
SCALE = 128.0


class AdaptiveEmbedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.ends = [0] + CUTOFFS + [VOCAB]
        self.tables, self.projs = nn.ModuleList(), nn.ParameterList()
        for i in range(len(self.ends) - 1):
            d = D // 4**i
            self.tables.append(nn.Embedding(self.ends[i + 1] - self.ends[i], d))
            self.projs.append(nn.Parameter(torch.empty(D, d).normal_(0, 0.01)))

    def forward(self, inp):
        flat = inp.view(-1)
        out = torch.zeros([flat.size(0), D], dtype=self.projs[0].dtype, device=inp.device)
        for i in range(len(self.tables)):
            mask = (flat >= self.ends[i]) & (flat < self.ends[i + 1])
            at = mask.nonzero().squeeze(1)
            if at.numel() == 0:
                continue
            got = self.tables[i](flat.index_select(0, at) - self.ends[i])
            out.index_copy_(0, at, F.linear(got, self.projs[i]))
        return out.view(*inp.size(), D).mul_(D**0.5)


class RelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.r = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.o, self.norm = nn.Linear(D, D, bias=False), nn.LayerNorm(D)

    def rel_shift(self, x):
        pad = torch.zeros((x.size(0), 1, *x.size()[2:]), device=x.device, dtype=x.dtype)
        x_padded = torch.cat([pad, x], dim=1)
        x_padded = x_padded.view(x.size(1) + 1, x.size(0), *x.size()[2:])
        return x_padded[1:].view_as(x)

    def forward(self, w, r, u, v, mask, mems):
        qlen, rlen, bsz = w.size(0), r.size(0), w.size(1)
        heads = self.qkv(torch.cat([mems, w], 0) if mems is not None else w)
        q, k, val = torch.chunk(heads, 3, dim=-1)
        q = q[-qlen:]
        klen = k.size(0)
        q = q.view(qlen, bsz, HEADS, -1)
        k, val = k.view(klen, bsz, HEADS, -1), val.view(klen, bsz, HEADS, -1)
        rk = self.r(r).view(rlen, HEADS, -1)
        ac = torch.einsum("ibnd,jbnd->ijbn", (q + u, k))
        bd = self.rel_shift(torch.einsum("ibnd,jnd->ijbn", (q + v, rk)))
        score = ac + bd
        score.mul_((D // HEADS) ** -0.5)
        score = score.float().masked_fill(mask[:, :, :, None], -float("inf")).type_as(score)
        prob = F.dropout(F.softmax(score, dim=1), 0.1, self.training)
        vec = torch.einsum("ijbn,jbnd->ibnd", (prob, val)).contiguous().view(qlen, bsz, -1)
        return self.norm(w + F.dropout(self.o(vec), 0.1, self.training))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = RelAttention()
        self.ff = nn.Sequential(nn.Linear(D, INNER), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(INNER, D), nn.Dropout(0.1))
        self.norm = nn.LayerNorm(D)

    def forward(self, w, *args):
        w = self.attn(w, *args)
        return self.norm(w + self.ff(w))


class MemTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = AdaptiveEmbedding()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.u = nn.Parameter(torch.zeros(HEADS, D // HEADS))
        self.v = nn.Parameter(torch.zeros(HEADS, D // HEADS))
        self.crit = nn.AdaptiveLogSoftmaxWithLoss(D, VOCAB, CUTOFFS, div_value=4.0)
        self.register_buffer("inv_freq", 1 / (10000 ** (torch.arange(0.0, D, 2.0) / D)))

    def update_mems(self, hids, mems):
        with torch.no_grad():
            return [torch.cat([m, h], 0)[-MEM:].detach() for m, h in zip(mems, hids)]

    def forward(self, data, target, *mems):
        qlen = data.size(0)
        w = self.emb(data)
        mems = list(mems) or [torch.empty(0, *w.shape[1:], dtype=w.dtype, device=w.device) for _ in range(LAYERS)]
        klen = mems[0].size(0) + qlen
        mask = torch.triu(torch.ones(qlen, klen, device=w.device), diagonal=1 + klen - qlen).bool()[:, :, None]
        pos = torch.arange(klen - 1, -1, -1.0, device=w.device).type_as(self.inv_freq)
        sin = torch.outer(pos, self.inv_freq)
        r = F.dropout(torch.cat([sin.sin(), sin.cos()], -1), 0.1, self.training)
        w = F.dropout(w, 0.1, self.training)
        hids = []
        for layer, m in zip(self.layers, mems):
            hids.append(w)
            w = layer(w, r, self.u, self.v, mask, m)
        new = self.update_mems(hids, mems)
        out = self.crit(w.view(-1, D), target.reshape(-1))
        return [-out.output.float(), *new]


torch.manual_seed(0)
corpus = (torch.rand(BATCH, TGT * 6 + 1) ** 4 * VOCAB).long().t().contiguous()
model = MemTransformer().cuda().half()
params = [p for p in model.parameters() if p.requires_grad]
master = [p.detach().clone().float() for p in params]
for p in master:
    p.requires_grad = True
optimizer = torch.optim.Adam(master, lr=2.5e-4)
mems = tuple()
for step in range(5):
    data = corpus[step * TGT : (step + 1) * TGT].cuda()
    target = corpus[step * TGT + 1 : (step + 1) * TGT + 1].cuda()
    model.zero_grad()
    ret = model(data, target, *mems)
    loss, mems = ret[0].mean(), ret[1:]
    (loss * SCALE).backward()
    for m, p in zip(master, params):
        if m.grad is None:
            m.grad = torch.empty_like(m)
        m.grad.copy_(p.grad)
        m.grad.mul_(1.0 / SCALE)
    norm = torch.nn.utils.clip_grad_norm_(master, 0.25)
    optimizer.step()
    with torch.no_grad():
        for m, p in zip(master, params):
            p.copy_(m)
    print(step, float(loss), float(norm), flush=True)

model.eval()
model.crit.eval()
total = 0.0
with torch.no_grad():
    hidden = model.layers[0](model.emb(data), torch.zeros(TGT, D, device="cuda").half(), model.u, model.v,
                             torch.zeros(TGT, TGT, 1, device="cuda").bool(), None)
    best = model.crit.predict(hidden[:8].view(-1, D))
print((best.view(-1) == target[:8].reshape(-1)).sum().item())
