"""Tours by attention (Kool): nodes drawn one after another from masked logits, REINFORCE against a greedy rollout."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

CITIES, BATCH, D, HEADS = 60, 1024, 128, 8


class SkipConnection(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return x + self.module(x)


class MultiHeadAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = 1 / math.sqrt(D // HEADS)
        self.query = nn.Parameter(torch.Tensor(HEADS, D, D // HEADS))
        self.key = nn.Parameter(torch.Tensor(HEADS, D, D // HEADS))
        self.val = nn.Parameter(torch.Tensor(HEADS, D, D // HEADS))
        self.out = nn.Parameter(torch.Tensor(HEADS, D // HEADS, D))
        for p in self.parameters():
            p.data.uniform_(-1 / math.sqrt(p.size(-1)), 1 / math.sqrt(p.size(-1)))

    def forward(self, h):
        b, n, d = h.size()
        flat = h.contiguous().view(-1, d)
        shape = (HEADS, b, n, -1)
        q, k = torch.matmul(flat, self.query).view(shape), torch.matmul(flat, self.key).view(shape)
        v = torch.matmul(flat, self.val).view(shape)
        attn = torch.softmax(self.norm * torch.matmul(q, k.transpose(2, 3)), dim=-1)
        heads = torch.matmul(attn, v)
        return torch.mm(heads.permute(1, 2, 0, 3).contiguous().view(-1, d), self.out.view(-1, d)).view(b, n, d)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(D)

    def forward(self, x):
        return self.norm(x.view(-1, x.size(-1))).view(*x.size())


def layer():
    ff = nn.Sequential(nn.Linear(D, 512), nn.ReLU(), nn.Linear(512, D))
    return nn.Sequential(SkipConnection(MultiHeadAttention()), Norm(), SkipConnection(ff), Norm())


class AttentionModel(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.embed = nn.Linear(2, D)
        self.encoder = nn.Sequential(*(layer() for _ in range(layers)))
        self.placeholder = nn.Parameter(torch.empty(2 * D).uniform_(-1, 1))
        self.project_nodes = nn.Linear(D, 3 * D, bias=False)
        self.project_fixed = nn.Linear(D, D, bias=False)
        self.project_step = nn.Linear(2 * D, D, bias=False)
        self.project_out = nn.Linear(D, D, bias=False)
        self.greedy = False

    def forward(self, cities):
        b, n, _ = cities.shape
        h = self.encoder(self.embed(cities))
        fixed = self.project_fixed(h.mean(1))[:, None, :]
        gk, gv, lk = self.project_nodes(h[:, None]).chunk(3, dim=-1)
        heads = lambda x: x.contiguous().view(b, 1, n, HEADS, -1).permute(3, 0, 1, 2, 4)
        gk, gv, lk = heads(gk), heads(gv), lk.contiguous()
        visited = torch.zeros(b, 1, n, dtype=torch.uint8, device=cities.device)
        first = last = None
        log_ps, tour = [], []
        for i in range(n):
            if first is None:
                context = self.placeholder[None, None, :].expand(b, 1, -1)
            else:
                at = torch.cat((first, last), 1)[:, :, None].expand(b, 2, D)
                context = h.gather(1, at).view(b, 1, -1)
            query = fixed + self.project_step(context)
            q = query.view(b, 1, HEADS, 1, D // HEADS).permute(2, 0, 1, 3, 4)
            compat = torch.matmul(q, gk.transpose(-2, -1)) / math.sqrt(q.size(-1))
            compat[visited[None, :, :, None, :].bool().expand_as(compat)] = -math.inf
            glimpse = torch.matmul(torch.softmax(compat, dim=-1), gv)
            final = self.project_out(glimpse.permute(1, 2, 3, 0, 4).contiguous().view(b, 1, 1, D))
            logits = torch.matmul(final, lk.transpose(-2, -1)).squeeze(-2) / math.sqrt(D)
            logits = torch.tanh(logits) * 10.0
            logits[visited.bool()] = -math.inf
            log_p = F.log_softmax(logits, dim=-1)[:, 0, :]
            probs = log_p.exp()
            selected = probs.max(1)[1] if self.greedy else probs.multinomial(1).squeeze(1)
            last = selected[:, None]
            first = last if first is None else first
            visited = visited.scatter(-1, last[:, :, None], 1)
            log_ps.append(log_p)
            tour.append(selected)
        log_p, tour = torch.stack(log_ps, 1), torch.stack(tour, 1)
        log_p = log_p.gather(2, tour.unsqueeze(-1)).squeeze(-1)
        d = cities.gather(1, tour.unsqueeze(-1).expand_as(cities))
        cost = (d[:, 1:] - d[:, :-1]).norm(p=2, dim=2).sum(1) + (d[:, 0] - d[:, -1]).norm(p=2, dim=1)
        return cost, log_p.sum(1)


torch.manual_seed(0)
model = AttentionModel().cuda()
baseline = copy.deepcopy(model)
baseline.greedy = True
baseline.eval()
optimizer = torch.optim.Adam([{"params": model.parameters(), "lr": 1e-4}])
for step in range(4):
    x = torch.rand(BATCH, CITIES, 2).cuda()
    cost, log_likelihood = model(x)
    with torch.no_grad():
        bl, _ = baseline(x)
    loss = ((cost - bl) * log_likelihood).mean()
    optimizer.zero_grad()
    loss.backward()
    norms = [nn.utils.clip_grad_norm_(group["params"], 1.0) for group in optimizer.param_groups]
    optimizer.step()
    print(step, cost.mean().item(), norms[0].item(), flush=True)
model.eval()
model.greedy = True
with torch.no_grad():
    costs = torch.cat([model(torch.rand(BATCH, CITIES, 2, device="cuda"))[0].cpu() for _ in range(2)])
    if costs.mean() < bl.mean().cpu():
        baseline.load_state_dict(model.state_dict())
print(costs.mean().item(), torch.std(costs).item() / math.sqrt(len(costs)))
